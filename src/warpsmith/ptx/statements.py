"""Statements that are no instruction calls: raw PTX, variables, pragmas, line information."""

from __future__ import annotations

from warpsmith.assembly.ptx.parser import parse
from warpsmith.assembly.ptx.tree import Pragma, Variable
from warpsmith.base.errors import InputError, PtxError
from warpsmith.base.place import error, user_place
from warpsmith.base.ptx_types import PtxType
from warpsmith.base.source import Place
from warpsmith.dsl.adopt import adopt, adopt_items
from warpsmith.dsl.shared_memory import STATIC_LIMIT
from warpsmith.dsl.trace import current

__all__ = ["declare", "file_", "loc", "pragma", "raw", "var"]

_WRAP = ".version 9.0\n.target sm_90a\n.address_size 64\n.entry raw()\n{{\n{}\n}}\n"


def _check_text(what: str, text: object) -> None:
    if not isinstance(text, str):
        raise error(f"{what} takes PTX text, not {type(text).__name__}", 'write e.g. ptx.raw("membar.gl;")')


def raw(text: str) -> None:
    """Read PTX statements and put them here. Names in them mean the registers and variables of those names."""
    trace = current()
    _check_text("ptx.raw", text)
    body = text.strip()
    if body and body[-1] not in ";:}":
        body += ";"
    try:
        module = parse(_WRAP.format(body))
    except (PtxError, InputError) as e:
        problems = [p.message for p in e.problems] if isinstance(e, PtxError) else [str(e)]
        raise error(f"ptx.raw: {'; '.join(problems)}", f"in the text {text.strip()!r}") from None
    adopt(trace, module.entry("raw").body or [], trace.forced_place or user_place())


def declare(text: str) -> None:
    """Read module-level PTX (variables, functions, prototypes, aliases) and put it in front of the kernel."""
    trace = current()
    _check_text("ptx.declare", text)
    try:
        module = parse(f".version {max(trace.version, (9, 0))[0]}.0\n.target sm_90a\n.address_size 64\n{text}\n")
    except (PtxError, InputError) as e:
        problems = [p.message for p in e.problems] if isinstance(e, PtxError) else [str(e)]
        raise error(f"ptx.declare: {'; '.join(problems)}", f"in the text {text.strip()!r}") from None
    adopt_items(trace, module.items)


_SPACES = ("shared", "global", "const", "local", "param")


def var(
    state_space: str,
    dtype: PtxType,
    name: str,
    *,
    size: int | None = None,
    align: int | None = None,
    linking: str | None = None,
) -> str:
    """Declare a variable (`size` elements, a scalar when None) and return its name for `ptx.addr`.

    Variables of the spaces global and const, and those with a linking, stand at module level, the others here.
    """
    if not isinstance(dtype, PtxType):
        raise error(f"a variable needs a type of warpsmith.types, not {type(dtype).__name__}")
    if state_space not in _SPACES:
        raise error(f"unknown state space {state_space!r}", f"write one of {', '.join(_SPACES)}")
    if linking not in (None, "extern", "visible", "weak", "common"):
        raise error(f"unknown linking {linking!r}", "write extern, visible, weak or common")
    trace = current()
    shape = [] if size is None else [size or None]
    node = Variable(state_space, dtype.name, name, shape, align=align, linkage=linking or "")
    if state_space in ("global", "const") or linking:
        trace.declare_variable(name, state_space, dtype.name)
        trace.items.append(node)
    else:
        trace.declare_local(name, state_space, dtype.name)
        trace.append(node)
    if state_space == "shared" and linking != "extern":
        trace.shared.place_static(dtype.bits // 8 * (size or 1), align or dtype.bits // 8)
        total = trace.shared.static_bytes
        if total > STATIC_LIMIT:
            raise error(
                f"shared memory over the limit: variables may have {STATIC_LIMIT} bytes together, these {total}",
                "allocate with smem.alloc, which uses dynamic shared memory beyond that",
            )
    return name


def pragma(value: str) -> None:
    """Emit `.pragma "value";` here."""
    current().append(Pragma([value]))


def file_(file_idx: int, filename: str) -> None:
    """Name a source file for `ptx.loc`."""
    if not isinstance(file_idx, int) or not isinstance(filename, str):
        raise error("ptx.file_ takes a number and a file name", 'write ptx.file_(1, "kernel.py")')
    current().files[file_idx] = filename


def loc(file_idx: int, line: int, col: int = 0) -> None:
    """Give the following instructions this source line instead of their Python line."""
    trace = current()
    if not isinstance(line, int) or not isinstance(file_idx, int) or file_idx not in trace.files:
        raise error(f"ptx.loc: no file {file_idx}", f'name it first: ptx.file_({file_idx}, "kernel.py")')
    trace.forced_place = Place(trace.files[file_idx], line, col)
