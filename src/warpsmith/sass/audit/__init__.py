"""Audit: every distinct instruction word of libraries decoded, compared with the disassembler, and encoded back.

`audit(paths)` gives a `Report`; docs/design/audit.md says what is counted and how a run is divided and resumed.
"""

from __future__ import annotations

from warpsmith.sass.audit.report import Example, Report, Tally
from warpsmith.sass.audit.run import audit

__all__ = ["Example", "Report", "Tally", "audit"]
