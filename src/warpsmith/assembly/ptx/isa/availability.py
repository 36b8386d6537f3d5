"""Where an instruction exists: PTX versions and architectures a mnemonic needs, from its row and the words it chose.

`lowest(match("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32")[0])` -> ((6, 5), "sm_75").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.isa.row import Match, Need
from warpsmith.base.arch import ARCHITECTURES, first_ptx_version, parse_arch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from warpsmith.assembly.ptx.isa.row import Row
    from warpsmith.base.arch import Arch

__all__ = ["architectures", "lowest", "missing", "version"]


def version(form: Match | Row) -> tuple[int, int]:
    """Return the PTX version that introduced `form`, whatever the architecture."""
    return max(n.ptx for n in _needs(form) if n.ptx)


def architectures(form: Match | Row) -> tuple[str, ...]:
    """Return the architectures of this package that have `form`, lowest first; of a row: those that have one of its forms."""
    needs = tuple(_needs(form))
    return tuple(sorted((a for a in ARCHITECTURES if _allows(needs, parse_arch(a))), key=parse_arch))


def lowest(form: Match | Row, supported: Iterable[str] = ARCHITECTURES) -> tuple[tuple[int, int], str] | None:
    """Return the lowest (PTX version, architecture) that has `form` among `supported`; None when none of them has it.

    The version is one that also knows the architecture as a target.
    """
    among = set(supported)
    for arch in architectures(form):
        if arch in among:
            ptx = max(version(form), first_ptx_version(arch), _row(form).first(parse_arch(arch)))
            if not _row(form).gone(ptx, parse_arch(arch)):
                return ptx, arch
    return None


def missing(form: Match, ptx: tuple[int, int], arch: str) -> Iterator[Need]:
    """Yield what `form` needs beyond a module of version `ptx` for `arch`: nothing when it may be used there.

    A form that PTX has removed by then needs an older version (`form.row.removed` says which).
    """
    target = parse_arch(arch)
    for need in form.needs:
        newer = need.ptx if need.ptx and need.ptx > ptx else None
        other = need.arch if need.arch and not need.arch.allows(target) else None
        if newer or other:
            yield Need(need.what, newer, other)
    first = form.row.first(target)
    if form.row.ptx <= ptx < first:
        yield Need(form.row.opcode, first)
    if form.row.gone(ptx, target):
        yield Need(f"older PTX for {form.row.opcode}")


def _row(form: Match | Row) -> Row:
    return form.row if isinstance(form, Match) else form


def _needs(form: Match | Row) -> Iterable[Need]:
    return form.needs if isinstance(form, Match) else (Need(form.opcode, form.ptx, form.arch),)


def _allows(needs: Iterable[Need], arch: Arch) -> bool:
    return all(n.arch is None or n.arch.allows(arch) for n in needs)
