"""`python -m warpsmith`: the command line."""

from __future__ import annotations

import sys

from warpsmith.cli.main import main

sys.exit(main())
