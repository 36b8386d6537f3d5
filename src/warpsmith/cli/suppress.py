"""`--suppress KIND[@FILE:LINE]=REASON`, of the verbs that list findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warpsmith.base.errors import InputError
from warpsmith.cli.output import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warpsmith.base.findings import Finding

__all__ = ["passed_over", "suppress_option", "suppressions"]

suppress_option = click.option(
    "--suppress", multiple=True, metavar="KIND[@FILE:LINE]=REASON", help="Pass a finding over, and say why."
)
"""The option; the command receives it as `suppress`."""


def suppressions(texts: Sequence[str]) -> dict[str, str]:
    """Read `KIND=REASON` and `KIND@FILE:LINE=REASON`."""
    out: dict[str, str] = {}
    for text in texts:
        kind, equals, reason = text.partition("=")
        if not equals:
            raise InputError(f"--suppress {text}: write KIND=REASON or KIND@FILE:LINE=REASON")
        out[kind] = reason
    return out


def passed_over(findings: Iterable[tuple[Finding, str]]) -> list[str]:
    """Return a line for each finding that is passed over."""
    return [f"passed over: {f.kind} at {f.where}: {reason}" for f, reason in ((shown(f), r) for f, r in findings)]
