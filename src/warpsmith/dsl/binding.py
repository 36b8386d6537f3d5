"""What the arguments of a call say: dimensions, template parameters, raw parameters, the grid."""

from __future__ import annotations

import inspect
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from warpsmith.base.errors import InputError
from warpsmith.base.tile import unify_envs
from warpsmith.dsl.configuration import Configuration, triple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from warpsmith.base.tile import Tile
    from warpsmith.dsl.build import Built

__all__ = ["Callee", "block_of", "check_options", "environment", "frozen", "grid_of", "split_keywords"]


class Callee(Protocol):
    """A kernel as a call needs it."""

    __name__: str
    fn: Callable[..., object]
    plans: dict[Any, Any]
    """Launches that were prepared, by the kinds of their arguments."""
    latest: dict[Any, Any]
    """The latest of them, by keywords and count."""
    quick: dict[tuple[Any, ...], Any]
    """(count, *keywords) of a call -> the latest of them as one function, where its library can check tensors by itself."""
    operators: dict[Any, Any]
    """Operators of torch and foreign functions of XLA, by their keywords."""
    number: int
    """Tells the kernel objects of a process apart."""
    constants: frozenset[str]
    """Names of the template parameters."""
    numbers: frozenset[str]
    """Names of the raw parameters that are numbers."""
    input_count: int
    roles: Mapping[str, tuple[int, int]]
    """Name of a role -> its first thread and the one behind its last."""

    @property
    def configuration(self) -> Configuration:
        """The arguments of `@kernel`."""
        ...

    @property
    def arch(self) -> str:
        """The architecture."""
        ...

    @property
    def tensor_names(self) -> list[str]:
        """Names of the tensor parameters."""
        ...

    @property
    def template_params(self) -> dict[str, object]:
        """Template parameters and defaults."""
        ...

    def build(self, env: Mapping[str, int] | None = None, /, **template: object) -> Built:
        """Trace the body."""
        ...

    def run(self, tensors: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run as a call does, unseen by automatic differentiation."""
        ...

    def check_count(self, given: int) -> None:
        """Raise `InputError` unless so many tensors may be given."""
        ...


@runtime_checkable
class _Array(Protocol):
    dtype: object
    shape: tuple[int, ...]

    def tobytes(self) -> bytes: ...


def frozen(values: Mapping[str, object]) -> tuple[object, ...]:
    """Return a key of named values."""
    return tuple(sorted(((n, _key(v)) for n, v in values.items()), key=itemgetter(0)))


def _key(value: object) -> tuple[object, ...]:
    """Return what tells a template value from every other: `1`, `True` and `1.0` differ, arrays by all their elements."""
    kind = type(value)
    if isinstance(value, (list, tuple)):
        return kind, *(_key(v) for v in value)
    if isinstance(value, dict):
        return kind, *((_key(k), _key(v)) for k, v in value.items())
    if isinstance(value, float):
        return kind, repr(value)
    if isinstance(value, _Array):
        return kind, str(value.dtype), value.shape, value.tobytes()
    try:
        hash(value)
    except TypeError:
        return kind, id(value), repr(value)
    return kind, value


def environment(kernel: Callee, names: Sequence[str], shapes: Sequence[Sequence[int]], tiles: Sequence[Tile]) -> dict[str, int]:
    """Return dimension → extent of tensors of these shapes; `InputError` where one does not fit or two disagree."""
    envs: list[dict[str, int]] = []
    for name, shape, tile in zip(names, shapes, tiles, strict=False):
        try:
            envs.append(tile.extract_env(shape))
        except InputError as e:
            raise InputError(f"{kernel.__name__}: argument {name}: {e}") from None
    try:
        return unify_envs(envs)
    except InputError as e:
        raise InputError(f"{kernel.__name__}: {e}") from None


def check_options(kernel: Callee, keywords: Mapping[str, object], options: Sequence[str]) -> None:
    """Raise `InputError` for a keyword that is neither the kernel's own (template, raw parameter, dimension) nor an option."""
    c = kernel.configuration
    symbols = {s for t in (*c.in_specs, *c.out_specs) for s in t.symbolic_dims}
    own = [*kernel.template_params, *(p.name for p in c.raw_params), *sorted(symbols), "grid"]
    for n in keywords:
        if n not in own and n not in options:
            raise InputError(
                f"kernel {kernel.__name__}: unknown keyword argument {n!r}; known: {', '.join(own)}; "
                f"of simulate: {', '.join(options)}"
            )


def split_keywords(
    kernel: Callee, env: Mapping[str, int], keywords: Mapping[str, Any]
) -> tuple[dict[str, int], dict[str, Any], dict[str, Any], Any]:
    """Return (all dimensions, template parameters, values of raw parameters, the grid asked for or None)."""
    keywords = dict(keywords)
    override = keywords.pop("grid", None)
    raw = {p.name for p in kernel.configuration.raw_params}
    symbols = {s for t in (*kernel.configuration.in_specs, *kernel.configuration.out_specs) for s in t.symbolic_dims}
    env = {**{n: int(keywords[n]) for n in symbols & keywords.keys()}, **env}
    templates = {n: v for n, v in keywords.items() if n in kernel.template_params or (n not in raw and n not in symbols)}
    return env, templates, {**env, **{n: v for n, v in keywords.items() if n in raw}}, override


def block_of(kernel: Callee) -> tuple[int, int, int]:
    """Return the threads of a CTA: `block`, else `reqntid`; a kernel that states neither is not launched with one thread."""
    c = kernel.configuration
    if not c.block_given and c.reqntid is None:
        raise InputError(f"{kernel.__name__}: no block; give @kernel(block=…), the threads of a CTA")
    return c.block if c.block_given else c.reqntid or c.block


def grid_of(kernel: Callee, env: Mapping[str, int], override: object) -> tuple[int, int, int]:
    """Return the grid: `override`, else the kernel's own, a function of the dimensions called with them."""
    grid = override if override is not None else kernel.configuration.grid
    if grid is None:
        raise InputError(f"{kernel.__name__}: no grid; give @kernel(grid=…) or pass grid= to the call")
    if callable(grid):
        wanted = inspect.signature(grid).parameters
        every = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in wanted.values())
        missing = [n for n, p in wanted.items() if n not in env and p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        if missing:
            raise InputError(
                f"{kernel.__name__}: the grid needs {', '.join(missing)}; known dimensions: {', '.join(env) or 'none'}"
            )
        grid = grid(**{n: v for n, v in env.items() if every or n in wanted})
    return triple("grid", grid)  # type: ignore[arg-type]
