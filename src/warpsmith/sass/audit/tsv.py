"""An audit's counts as tab-separated text: what was read, then a line for each architecture and mnemonic."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from warpsmith.sass.audit.report import Tally

if TYPE_CHECKING:
    from warpsmith.sass.audit.report import Report

__all__ = ["as_tsv"]

_COUNTS = tuple(f.name for f in fields(Tally))


def as_tsv(report: Report) -> str:
    """Return the text; lines that begin with `#` say what was audited, and with what. File names stand without folders."""
    lines = [f"# {report.tool}, decoder {report.code}"]
    lines += [f"# {i.path.rpartition('/')[2]}  {i.size} bytes  SHA-256 {i.sha256}" for i in report.inputs]
    if report.sample:
        lines.append(f"# a sample of {report.sample} words, seed {report.seed}")
    for arch, sha256 in report.tables.items():
        lines.append(
            f"# {arch}  {report.cubins[arch]} cubins  {report.instructions[arch]} instructions  table SHA-256 {sha256}"
        )
    lines += [f"# {arch}  {n} instructions, no table" for arch, n in report.without_table.items()]
    lines += [f"# {arch}  {n} words that both sides reject" for arch, n in report.illegal.items()]
    lines += [f"# not read: {u}" for u in report.unread]
    lines.append("\t".join(("arch", "mnemonic", *_COUNTS)))
    for arch, rows in report.tallies.items():
        lines += ["\t".join((arch, name, *(str(getattr(t, c)) for c in _COUNTS))) for name, t in rows.items()]
    return "\n".join(lines) + "\n"
