from __future__ import annotations

from command_line import run

__all__ = ["run"]
