"""An audit's report as one page of HTML that needs nothing else."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from warpsmith.sass.audit.report import Tally

if TYPE_CHECKING:
    from collections.abc import Iterable

    from warpsmith.sass.audit.report import Example, Report

__all__ = ["as_html"]

_STYLE = """\
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:.5rem 0}
td,th{padding:.1rem .7rem;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}
.bad{background:#fdd}
code,pre{font:13px/1.4 ui-monospace,monospace;white-space:pre-wrap}
"""
_HEADS = ("words", "exact", "differing", "unknown", "rejected", "raw words", "encoded back", "of these from text and control")


def as_html(report: Report) -> str:
    """Return the page: counts by architecture, by mnemonic, and the words that are not as they should be."""
    body = [
        f"<h1>Audit of {sum(report.instructions.values()):,} instructions</h1>",
        f"<p>{escape(report.tool)}, decoder {escape(report.code)}</p>",
        f"<p>A sample of {report.sample:,} words, seed {report.seed}.</p>" if report.sample else "",
        _table("file", ("bytes", "SHA-256"), ((i.path, (f"{i.size:,}", i.sha256), False) for i in report.inputs)),
        _table("table of", ("SHA-256",), ((arch, (sha256,), False) for arch, sha256 in report.tables.items())),
        _counts("architecture", [(a, report.total(a)) for a in report.tallies]),
        *(f"<p class=bad>not read: {escape(u)}</p>" for u in report.unread),
        *(f"<p>{escape(a)}: {n:,} instructions; there is no table</p>" for a, n in report.without_table.items()),
    ]
    for arch, rows in report.tallies.items():
        inner = _counts("mnemonic", list(rows.items()))
        shown = "".join(_example(e) for e in report.examples if e.arch == arch)
        body.append(f"<details{' open' if shown else ''}><summary><b>{escape(arch)}</b></summary>{shown}{inner}</details>")
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>SASS audit</title>"
        f"<style>{_STYLE}</style>\n" + "\n".join(b for b in body if b) + "\n</html>\n"
    )


def _counts(what: str, rows: list[tuple[str, Tally]]) -> str:
    total = Tally()
    for _, tally in rows:
        total.add(tally)
    return _table(what, _HEADS, ((name, _cells(t), not t.clean) for name, t in [*rows, ("all", total)]))


def _cells(t: Tally) -> tuple[str, ...]:
    numbers = (t.words, t.exact, t.differing, t.unknown, t.rejected, t.raw, t.encoded, t.canonical)
    return tuple(f"{n:,}" for n in numbers)


def _table(first: str, heads: tuple[str, ...], rows: Iterable[tuple[str, tuple[str, ...], bool]]) -> str:
    head = "".join(f"<th>{h}" for h in (first, *heads))
    lines = [
        f"<tr{' class=bad' if bad else ''}>" + "".join(f"<td>{escape(c)}" for c in (name, *cells)) for name, cells, bad in rows
    ]
    return f"<table><tr>{head}\n" + "\n".join(lines) + "</table>"


def _example(e: Example) -> str:
    theirs = escape(e.theirs) or "<i>rejected</i>"
    return f"<pre class=bad>{escape(e.kind)} {e.word:#034x}\n  ours   {escape(e.ours)}\n  theirs {theirs}</pre>"
