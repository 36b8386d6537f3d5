"""`@intrinsic`: a helper whose statements stand between comments with its name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from warpsmith.assembly.ptx.tree import Comment
from warpsmith.dsl.registers import NegPred, Reg, RegArray
from warpsmith.dsl.trace import current

__all__ = ["intrinsic"]

P = ParamSpec("P")
T = TypeVar("T")


def _shown(value: object) -> str:
    """Show an argument so that the text is the same in any process: registers by name, objects by type."""
    if isinstance(value, Reg):
        return value.name
    if isinstance(value, NegPred):
        return f"!{value.reg.name}"
    if isinstance(value, RegArray):
        return f"{value.base}<{value.count}>"
    if isinstance(value, (int, float, str, bool, type(None))):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_shown, value))}]"
    return str(getattr(value, "name", type(value).__name__))


def intrinsic(fn: Callable[P, T]) -> Callable[P, T]:
    """Wrap the statements that `fn` emits in `// BEGIN name(args)` and `// END name(args)`."""

    @functools.wraps(fn)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        shown = [*map(_shown, args), *(f"{n}={_shown(v)}" for n, v in kwargs.items())]
        text = f"{fn.__name__}({', '.join(shown)})".replace("\n", " ")
        current().append(Comment(f"BEGIN {text}"))
        result = fn(*args, **kwargs)
        current().append(Comment(f"END {text}"))
        return result

    return wrapper
