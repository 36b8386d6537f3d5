"""The call of a prepared launch as one straight function, written for its number of tensors and keywords.

`Plan.run` and the functions around it cost a frame, a loop and a list for each of their steps: half of what a call costs the
host. Here the steps of one launch stand in one function body, its constants bound as defaults. It does what they do, and
gives None for every call that is not of the kind it was written for, which then goes the long way.
"""

from __future__ import annotations

from ctypes import memmove
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, final

from warpsmith.launch.arrays import stream_handle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType

    from warpsmith.launch.plan import Plan

__all__ = ["ArrayCode", "Outputs", "straight_call"]

_NUMBERS = frozenset((int, float, bool))


@final
class ArrayCode(NamedTuple):
    """How generated code handles the arrays of one library."""

    address: str
    """Expression for the address of array `{}`."""
    stream: Callable[[], int]
    """The library's current stream on the launch's device."""
    recording: Callable[[], bool]
    """Says whether automatic differentiation records at all."""


@final
class Outputs(NamedTuple):
    """Where the outputs are: `inputs` tensors come first in a call; `allocators` make the outputs, if they are not passed."""

    inputs: int
    allocators: tuple[Callable[[], Any], ...]


@final
class _Shape(NamedTuple):
    """All that the text of the function depends on."""

    tensors: int
    outputs: tuple[int, int]
    """Tensors before the outputs, outputs that are allocated."""
    keywords: tuple[str, ...]
    maps: tuple[tuple[int, int], ...]
    """(place, tensor) of each tensor map."""
    numbers: tuple[tuple[int, int, int], ...]
    """(offset in the block, number of the value, bytes) of each number."""
    address: str
    alone: bool
    recorded: bool


def straight_call(
    plan: Plan, built: Any, given: int, outputs: Outputs, code: ArrayCode, same: Callable[..., bool], recorded: bool,
    keywords: Sequence[str],
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any] | None:  # fmt: skip
    """Return `call(tensors, keywords)`, which launches and returns the outputs, or None having done nothing.

    `keywords` are those of the call, in order: numbers of the plan, in its order, and `stream`. `same` says whether tensors
    are of the kinds the plan was made for, but for the low four bits of addresses, which are zero. With `recorded` a tensor
    may be watched by automatic differentiation, and nothing is launched while that records. `built.shared_out`: likewise.
    """
    shape = _Shape(
        given, (outputs.inputs, len(outputs.allocators)), tuple(keywords),
        tuple((place, a.tensor) for place, _, a, _ in plan.maps),
        tuple((offset, n.number, n.size) for offset, n in plan.numbers), code.address, plan.context.alone, recorded,
    )  # fmt: skip
    scope: dict[str, Any] = {
        "again": plan.again, "allocators": outputs.allocators, "built": built, "fresh": plan.fresh_block,
        "handle": stream_handle, "inside": plan.inside, "launch": plan.launch, "launchable": plan.launchable,
        "memmove": memmove, "number": _NUMBERS, "pack": plan.pack, "packers": [n.pack for _, n in plan.numbers], "plan": plan,
        "pool": plan.pool, "recording": code.recording, "remember": plan.context.recent.append, "same": same,
        "set_stream": plan.context.driver.set_stream, "stream_now": code.stream, "write_map": plan.write_map,
    }  # fmt: skip
    exec(_code(shape, tuple(scope)), scope)
    return scope["call"]


@lru_cache(maxsize=256)
def _code(shape: _Shape, names: tuple[str, ...]) -> CodeType:
    constants = ", ".join(f"{n}={n}" for n in names)
    lines = [f"def call(tensors, keywords, {constants}):", *(f"    {line}" for line in _body(shape))]
    return compile("\n".join(lines), "<straight call>", "exec")


def _body(s: _Shape) -> list[str]:
    values = [f"v{i}" for i in range(len(s.keywords) - ("stream" in s.keywords))]
    return [
        *_checks(s),
        *_tensors(s),
        *_keywords(s),
        *_allocation(s),
        "try:",
        "    block = pool.pop()",
        "except IndexError:",
        "    block = fresh()",
        f"pack(block.memory, block.start, {', '.join(_addresses(s))})" if _addresses(s) else "",
        *[f"if block.mapped[{p}] != {_addresses(s)[t]}: write_map(block, {p}, {_addresses(s)[t]})" for p, t in s.maps],
        *[f"memmove(block.first + {o}, packers[{i}](v{n}), {size})" for i, (o, n, size) in enumerate(s.numbers)],
        f"plan.values = ({', '.join(values)},)" if values else "plan.values = ()",
        "if block.stream != stream:",
        "    set_stream(block.config, stream)",
        "    block.stream = stream",
        "remember(plan)",
        *_driver_call(s),
        "pool.append(block)",
        "if status: raise plan.failure(int(status))",
        f"return {_returned(s)}",
    ]


def _checks(s: _Shape) -> list[str]:
    lines = [f"if len(tensors) != {s.tensors} or built.shared_out or not same(*tensors): return None"]
    return [*lines, "if recording(): return None"] if s.recorded else lines


def _tensors(s: _Shape) -> list[str]:
    if not s.tensors:
        return []
    names = [f"t{i}" for i in range(s.tensors)]
    addresses = [f"a{i} = {s.address.format(n)}" for i, n in enumerate(names)]
    low = f"if ({' | '.join(f'a{i}' for i in range(s.tensors))}) & 15: return None"
    return [f"{', '.join(names)}, = tensors", *addresses, low]


def _keywords(s: _Shape) -> list[str]:
    lines, count = [], 0
    for name in s.keywords:
        if name == "stream":
            lines.append("stream = keywords['stream']")
            lines.append("stream = stream_now() if stream is None else handle(stream)")
        else:
            lines += [f"v{count} = keywords[{name!r}]", f"if type(v{count}) not in number: return None"]
            count += 1
    return lines if "stream" in s.keywords else [*lines, "stream = stream_now()"]


def _allocation(s: _Shape) -> list[str]:
    made = range(s.outputs[1])
    return [line for i in made for line in (f"o{i} = allocators[{i}]()", f"b{i} = {s.address.format(f'o{i}')}")]


def _addresses(s: _Shape) -> list[str]:
    inputs, made = s.outputs
    given = [f"a{i}" for i in range(s.tensors)]
    return [*given[:inputs], *[f"b{i}" for i in range(made)], *given[inputs:]]


def _driver_call(s: _Shape) -> list[str]:
    if not s.alone:
        return ["status = inside(block)"]
    return ["status = launch(block.config, launchable, block.parameters, 0)[0]", "if status: status = again(block, status)"]


def _returned(s: _Shape) -> str:
    inputs, made = s.outputs
    names = [f"o{i}" for i in range(made)] if made else [f"t{i}" for i in range(inputs, s.tensors)]
    return names[0] if len(names) == 1 else f"({', '.join(names)}{',' if names else ''})"
