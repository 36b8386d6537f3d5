"""Named dimensions of tensors that have no value in a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never, final

from warpsmith.base.place import error

if TYPE_CHECKING:
    from warpsmith.base.errors import KernelError

__all__ = ["Dimension", "valueless"]


def valueless(name: str) -> KernelError:
    """Build the error of a calculation with the dimension `name`, whose value this trace was not given."""
    return error(
        f"the dimension '{name}' has no value in this trace",
        f"give it one: k.ptx({name}=…), or -p {name}=… on the command line",
    )


@final
class Dimension(str):
    """The name of a dimension. Python takes it for a text; to calculate with it is an error at the user's line."""

    __slots__ = ()


def _refuse(self: Dimension, *_: object) -> Never:
    raise valueless(self)


_BINARY = ["add", "sub", "mul", "floordiv", "truediv", "mod", "divmod", "pow", "lshift", "rshift", "and", "or", "xor"]
_OTHERS = ["neg", "pos", "invert", "abs", "index", "int", "float", "lt", "le", "gt", "ge"]
for _name in (*_BINARY, *(f"r{n}" for n in _BINARY), *_OTHERS):
    setattr(Dimension, f"__{_name}__", _refuse)
