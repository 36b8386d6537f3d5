"""Findings as SARIF 2.1.0 (OASIS), which code hosts and editors show beside the lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from warpsmith import __version__
from warpsmith.cli.output import shown
from warpsmith.findings import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.base.findings import Finding
    from warpsmith.base.source import Place

__all__ = ["sarif"]

_LEVELS = {"error": "error", "portability": "warning", "note": "note"}


def sarif(findings: Sequence[Finding], suppressed: Sequence[tuple[Finding, str]] = ()) -> bytes:
    """Return a log of findings; those passed over carry a suppression with its reason."""
    kinds = sorted({f.kind for f in (*findings, *(f for f, _ in suppressed))})
    rules = [
        {"id": k, "shortDescription": {"text": KINDS[k].wrong}, "help": {"text": KINDS[k].repair}} for k in kinds if k in KINDS
    ]
    results = [_result(f) for f in findings]
    results += [{**_result(f), "suppressions": [{"kind": "external", "justification": reason}]} for f, reason in suppressed]
    driver = {"name": "warpsmith", "version": __version__, "rules": rules}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return (json.dumps(log, indent=2) + "\n").encode()


def _result(finding: Finding) -> dict[str, object]:
    f = shown(finding)
    text = " ".join(p for p in (f"{f.message}.", f"Threads: {f.threads}." if f.threads else "", f.repair) if p)
    out: dict[str, object] = {"ruleId": f.kind, "level": _LEVELS[f.severity], "message": {"text": text}}
    if f.where is not None:
        out["locations"] = [_location(f.where)]
    if related := [{**_location(r.where), "message": {"text": r.message}} for r in f.related if r.where is not None]:
        out["relatedLocations"] = related
    if f.schedule:
        out["properties"] = {"schedule": f.schedule}
    return out


def _location(place: Place) -> dict[str, object]:
    region = {"startLine": place.line, **({"startColumn": place.column} if place.column else {})}
    return {"physicalLocation": {"artifactLocation": {"uri": place.file}, "region": region}}
