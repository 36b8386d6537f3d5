"""Meanings by declaration: which function carries out an instruction.

A module of this folder registers builders. A builder is called once per mnemonic with the `Match` and returns the function
that carries the instruction out, or `refuse("reason")`. docs/design/simulator.md says what the functions are given.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, final

from warpsmith.base.errors import DeclarationError

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import Match, Row

__all__ = ["Built", "Meaning", "Refused", "build", "control", "find", "in_place", "load", "machine", "pure", "refuse", "sync"]

Kind = Literal["pure", "machine", "sync", "control"]
Function = Callable[..., Any]


@final
@dataclass(frozen=True, slots=True)
class Refused:
    """An instruction that is recognised and not modelled; `reason` follows its name in the message."""

    reason: str


def refuse(reason: str) -> Refused:
    """Return the answer of a builder for a form that is not modelled."""
    return Refused(reason)


@final
@dataclass(frozen=True, slots=True)
class Meaning:
    """A registered builder: `key` is the opcode, or it and the literal words that follow it in the row."""

    key: str
    kind: Kind
    builder: Callable[[Match], Function | Refused]
    module: str


@final
@dataclass(frozen=True, slots=True)
class Built:
    """What a builder returned for a mnemonic, with its kind."""

    kind: Kind
    fn: Function


_MEANINGS: dict[str, Meaning] = {}
_B = TypeVar("_B", bound=Callable[..., Any])


def _register(kind: Kind, keys: tuple[str, ...]) -> Callable[[_B], _B]:
    def take(builder: _B) -> _B:
        for key in keys:
            if key in _MEANINGS:
                raise DeclarationError(f"two meanings for `{key}`: {_MEANINGS[key].module} and {builder.__module__}")
            _MEANINGS[key] = Meaning(key, kind, builder, builder.__module__)
        return builder

    return take


def pure(*keys: str) -> Callable[[_B], _B]:
    """Register an elementwise meaning: `fn(out, a, b)`, or a numpy ufunc, which is called as `ufunc(a, b, out)`."""
    return _register("pure", keys)


def machine(*keys: str) -> Callable[[_B], _B]:
    """Register a meaning that needs memory, lanes or the machine: `fn(x, *operands)`."""
    return _register("machine", keys)


def sync(*keys: str) -> Callable[[_B], _B]:
    """Register a meaning that is a switch point: `fn(x, *operands) -> Outcome`."""
    return _register("sync", keys)


def control(*keys: str) -> None:
    """Declare opcodes that lowering and the engine carry out themselves."""
    _register("control", keys)(lambda _: refuse("it is carried out by the engine"))


def in_place(fn: _B) -> _B:
    """Declare that `fn` reads every operand before it writes, so that `out` may be one of the operands."""
    fn.in_place = True  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess, reportAttributeAccessIssue]
    return fn


@cache
def load() -> dict[str, Meaning]:
    """Import every module of this folder and return the meanings by key."""
    package = importlib.import_module(__name__.rpartition(".")[0])
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return _MEANINGS


@cache
def find(row: Row) -> Meaning | None:
    """Return the meaning with the longest key that is a prefix of the row's literal words (optional ones skipped)."""
    meanings = load()
    words = [row.opcode]
    for element in row.elements:
        if element.kind == "literal":
            words.append(element.name)
        elif not element.optional:
            break
    for n in range(len(words), 0, -1):
        if (found := meanings.get(".".join(words[:n]))) is not None:
            return found
    return None


def build(match: Match) -> Built | Refused:
    """Return the function of a matched mnemonic; `Refused` when there is none or its builder refuses it.

    A builder is given the modifiers in the manual's order, however they were written.
    """
    meaning = find(match.row)
    if meaning is None:
        return Refused("it has no meaning in this simulator")
    fn = meaning.builder(match.canonical)
    return fn if isinstance(fn, Refused) else Built(meaning.kind, fn)
