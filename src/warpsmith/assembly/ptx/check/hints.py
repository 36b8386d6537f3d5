"""Directives of a function's head: known, where they belong, how many numbers they take (PTX ISA 11.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.lexer import whole_number
from warpsmith.assembly.ptx.tree import Directive, Function
from warpsmith.base.arch import parse_arch, parse_requirement
from warpsmith.base.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_hints"]

# name -> (kinds of function, least and most numbers, PTX version, architectures)
_KNOWN: dict[str, tuple[str, int, int, tuple[int, int], str]] = {
    "maxnreg": ("entry", 1, 1, (1, 3), "sm_10+"),
    "maxntid": ("entry", 1, 3, (1, 3), "sm_10+"),
    "reqntid": ("entry", 1, 3, (2, 1), "sm_10+"),
    "minnctapersm": ("entry", 1, 1, (2, 0), "sm_10+"),
    "maxnctapersm": ("entry", 1, 1, (1, 3), "sm_10+"),
    "explicitcluster": ("entry", 0, 0, (7, 8), "sm_90+"),
    "reqnctapercluster": ("entry", 1, 3, (7, 8), "sm_90+"),
    "maxclusterrank": ("entry", 1, 1, (7, 8), "sm_90+"),
    "blocksareclusters": ("entry", 0, 0, (9, 0), "sm_90+"),
    "noreturn": ("func", 0, 0, (6, 4), "sm_30+"),
    "abi_preserve": ("func", 1, 1, (9, 0), "sm_80+"),
    "abi_preserve_control": ("func", 1, 1, (9, 0), "sm_80+"),
}


def check_hints(function: Function, version: tuple[int, int], arch: str) -> Iterator[Problem]:
    """Yield what is wrong with the directives between the parameters and the body of `function`."""
    names: set[str] = set()
    for directive in function.directives:
        if isinstance(directive, Directive):
            names.add(directive.name)
            yield from _directive(directive, function, version, arch)
    if {"maxntid", "reqntid"} <= names:
        yield Problem(f"`{function.name}` has both .maxntid and .reqntid", function.span, "keep one of them")
    if {"maxclusterrank", "reqnctapercluster"} <= names:
        text = f"`{function.name}` has both .maxclusterrank and .reqnctapercluster"
        yield Problem(text, function.span, "keep one of them")
    if "noreturn" in names and function.returns:
        yield Problem(f"`{function.name}` is .noreturn and has a result", function.span)


def _directive(directive: Directive, function: Function, version: tuple[int, int], arch: str) -> Iterator[Problem]:
    name, span = directive.name, directive.span or function.span
    known = _KNOWN.get(name)
    if known is None:
        yield Problem(f"`.{name}` is no directive of a function", span, f"known are {', '.join('.' + n for n in _KNOWN)}")
        return
    kind, least, most, ptx, requirement = known
    if kind != function.kind:
        yield Problem(f"`.{name}` belongs to an .{kind}, `{function.name}` is an .{function.kind}", span)
    count = len(directive.arguments)
    if not least <= count <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        yield Problem(f"`.{name}` takes {wanted} number{'s' * (wanted != '1')}, {count} given", span)
    elif not all(
        (whole_number(a) or 0) > 0 for a in directive.arguments if name not in ("abi_preserve", "abi_preserve_control")
    ):
        yield Problem(f"`.{name}` takes positive numbers", span)
    if version < ptx:
        yield Problem(f"`.{name}` needs PTX {ptx[0]}.{ptx[1]}, the module is {version[0]}.{version[1]}", span)
    elif not parse_requirement(requirement).allows(parse_arch(arch)):
        yield Problem(f"`.{name}` needs {requirement}, the target is {arch}", span)
