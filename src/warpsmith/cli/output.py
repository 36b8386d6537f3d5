"""What the verbs share: `--json`, and files that appear whole or not at all."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warpsmith.base.whole_file import write_whole

if TYPE_CHECKING:
    from warpsmith.base.findings import Finding
    from warpsmith.base.source import Place

__all__ = ["finding_json", "json_option", "near", "print_json", "shown", "write_whole"]

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
"""The `--json` flag; the command receives it as `as_json`."""


def print_json(value: Any) -> None:
    """Print one JSON document."""
    json.dump(value, sys.stdout, indent=2, default=str)
    print()


def finding_json(finding: Finding) -> dict[str, object]:
    """Return a finding as plain values; places are `{"file": …, "line": …}` or None."""
    finding = shown(finding)
    return {
        "kind": finding.kind,
        "severity": finding.severity,
        "message": finding.message,
        "where": _place_json(finding.where),
        "threads": finding.threads,
        "related": [{"message": r.message, "where": _place_json(r.where)} for r in finding.related],
        "repair": finding.repair,
        "schedule": finding.schedule,
    }


def shown(finding: Finding) -> Finding:
    """Return the finding with files below the current folder named from there."""
    related = tuple(replace(r, where=near(r.where)) for r in finding.related)
    return replace(finding, where=near(finding.where), related=related)


def near(place: Place | None) -> Place | None:
    """Return the place with a file below the current folder named from there."""
    if place is None or not Path(place.file).is_relative_to(here := Path.cwd()):
        return place
    return replace(place, file=str(Path(place.file).relative_to(here)))


def _place_json(place: Place | None) -> dict[str, object] | None:
    return {"file": place.file, "line": place.line, "column": place.column} if place else None
