"""`@kernel`: a Python function that is traced into a PTX kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final, overload

from warpsmith.assembly.ptx.module import Module
from warpsmith.base.arch import first_ptx_version, parse_arch
from warpsmith.base.errors import InputError
from warpsmith.base.tile import Tile
from warpsmith.dsl import call, rooms
from warpsmith.dsl.arch import resolve_arch
from warpsmith.dsl.binding import frozen
from warpsmith.dsl.build import Built, build
from warpsmith.dsl.configuration import Configuration, triple
from warpsmith.dsl.foreign import Foreign, foreign
from warpsmith.dsl.operators_of_torch import call_operator, is_compiling, remember
from warpsmith.dsl.parameters import raw_parameter

if TYPE_CHECKING:
    from warpsmith.simulator.api import SimulationResult
    from warpsmith.toolchain.log import Resources
    from warpsmith.toolchain.ptxas import Compilation

__all__ = ["Kernel", "kernel"]

Grid = tuple[int, ...] | Callable[..., tuple[int, ...]]


@final
class Kernel:
    """A traced kernel. `.ptx() .module() .compile() .cubin() .sass() .resources()`, `k(*tensors)`, `k.simulate(*tensors)`.

    Keyword arguments of these methods are template parameters (the keyword-only parameters of the body) and values of
    named dimensions. Attributes may be set.
    """

    def __init__(self, fn: Callable[..., object], configuration: Configuration) -> None:
        self.fn = fn
        self.configuration = configuration
        self.__name__ = fn.__name__
        self.__doc__ = fn.__doc__
        self._built: dict[tuple[object, ...], Built] = {}
        self.plans: dict[Any, Any] = {}
        """Launches on a GPU that were prepared, by the kinds of their arguments."""
        self.latest: dict[Any, Any] = {}
        """The latest of them, by keywords and count."""
        self.quick: dict[tuple[Any, ...], Any] = {}
        """(count, *keywords) of a call -> the latest of them as one function, where its library can check tensors by itself."""
        self.operators: dict[Any, Any] = {}
        """Operators of torch and foreign functions of XLA, by their keywords."""
        self.number = remember(self)
        """Tells the kernel objects of a process apart."""
        self.constants = frozenset(self.template_params)
        """Names of the template parameters."""
        self.numbers = frozenset(p.name for p in configuration.raw_params if not p.shape)
        """Names of the raw parameters that are numbers."""
        self.roles: Mapping[str, tuple[int, int]] = {}
        """Name of a role -> its first thread and the one behind its last; may be set, and names warps in timelines."""
        self.input_count = len(configuration.in_specs)
        self._check_signature()

    def _check_signature(self) -> None:
        tensors = self.tensor_names
        specs = len(self.configuration.in_specs) + len(self.configuration.out_specs)
        if len(tensors) != specs:
            raise InputError(
                f"kernel {self.__name__}: {len(tensors)} tensor parameters ({', '.join(tensors) or 'none'}) and {specs} specs; "
                "positional parameters are the inputs, then the outputs: give each a Tile in in_specs= or out_specs="
            )

    def check_count(self, given: int) -> None:
        """Raise `InputError` unless so many tensors may be given to a call: the inputs, or the inputs and the outputs."""
        names, n_in, n_out = self.tensor_names, len(self.in_specs), len(self.out_specs)
        if given not in (n_in, n_in + n_out):
            raise InputError(
                f"{self.__name__}: {given} tensor{'' if given == 1 else 's'} given, and it takes {n_in} "
                f"input{'' if n_in == 1 else 's'} ({', '.join(names[:n_in]) or 'none'})"
                + (f", or {n_in + n_out} with its outputs ({', '.join(names[n_in:])})" if n_out else "")
            )

    @property
    def tensor_names(self) -> list[str]:
        """Names of the tensor parameters."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = list(inspect.signature(self.fn).parameters.values())
        names = [p.name for p in parameters if p.kind in kinds]
        specs = len(self.configuration.in_specs) + len(self.configuration.out_specs)
        optional = [p for p in parameters if p.kind in kinds and p.default is not inspect.Parameter.empty]
        return names[: max(specs, len(names) - len(optional))]

    @property
    def template_params(self) -> dict[str, object]:
        """The keyword-only parameters of the body with their defaults (`inspect.Parameter.empty` for none)."""
        parameters = inspect.signature(self.fn).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}

    @property
    def in_specs(self) -> tuple[Tile, ...]:
        """Tiles of the inputs."""
        return self.configuration.in_specs

    @property
    def out_specs(self) -> tuple[Tile, ...]:
        """Tiles of the outputs."""
        return self.configuration.out_specs

    @property
    def grid(self) -> Grid | None:
        """The grid, or the function of the dimensions that gives it."""
        return self.configuration.grid

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a CTA."""
        return self.configuration.block

    @property
    def cluster(self) -> tuple[int, int, int]:
        """CTAs of a cluster."""
        return self.configuration.cluster

    @property
    def smem(self) -> int:
        """Bytes of dynamic shared memory asked for."""
        return self.configuration.smem

    @property
    def arch(self) -> str:
        """The architecture, with `auto` resolved."""
        return resolve_arch(self.configuration.arch)

    def build(self, env: Mapping[str, int] | None = None, /, **template: object) -> Built:
        """Trace the body (or find an earlier trace) and return the module with what a launch needs to know."""
        names = self.template_params
        given = {n: v for n, v in template.items() if n in names}
        dims = dict(env or {})
        symbols = {s for t in (*self.in_specs, *self.out_specs) for s in t.symbolic_dims}
        for n, v in template.items():
            if n in symbols and n not in names:
                dims[n] = int(v)  # type: ignore[call-overload]
            elif n not in names:
                known = ", ".join([*names, *sorted(symbols)]) or "none"
                raise InputError(f"kernel {self.__name__}: unknown keyword argument {n!r}; known: {known}")
        for n, default in names.items():
            if n in dims:
                given.setdefault(n, dims[n])
            if n not in given and default is inspect.Parameter.empty:
                raise InputError(f"kernel {self.__name__}: the template parameter {n!r} needs a value")
        arch = self.arch
        for key in ((arch, frozen(given), ()), (arch, frozen(given), frozen(dims))):
            if (found := self._built.get(key)) is not None:
                return found
        built = build(self.fn, self.configuration, arch, self.tensor_names, dims, given)
        self._built[(arch, frozen(given), frozen(dims) if built.shapes_used else ())] = built
        return built

    def module(self, **template: object) -> Module:
        """Return the PTX tree, with line information. It is the kernel's own: edits show in later launches of it."""
        built = self.build(None, **template)
        built.shared_out = True
        return built.module

    def ptx(self, *, loc: bool = True, **template: object) -> str:
        """Return the PTX text; `loc=False` leaves line information out."""
        built = self.build(None, **template)
        return built.text(loc)

    def compile(self, **template: object) -> Compilation:
        """Compile with ptxas, through the disk cache: cubin, resources, and what ptxas says as findings at your lines."""
        return rooms.compiled(self.build(None, **template), self.arch, self.__name__)

    def cubin(self, **template: object) -> bytes:
        """Return the cubin that ptxas makes, through the disk cache; what it makes wrong code of is logged."""
        return rooms.complain(self.compile(**template)).cubin

    def sass(self, **template: object) -> str:
        """Return the listing of the machine code, as nvdisasm prints it."""
        return rooms.disassemble(self.cubin(**template))

    def resources(self, **template: object) -> Resources:
        """Return registers, spills and memory of the compiled kernel."""
        return self.compile(**template).resources[self.build(None, **template).name]

    def __call__(self, *tensors: object, **template: object) -> Any:
        """Run the kernel where its tensors are, and return its outputs: one alone, several as a tuple.

        numpy arrays and CPU tensors of torch and JAX run on the simulator; raises `SimulationError` on a finding of severity
        error. Arrays on a GPU (torch, CuPy, JAX, `__cuda_array_interface__`, DLPack) are launched there, in the library's
        current stream; outputs come uninitialised from the library's allocator unless they are passed behind the inputs.
        Keywords: template parameters, named dimensions, raw parameters, `grid=`, and on a GPU `stream=`, `cooperative=`,
        `programmatic=`.
        """
        if is_compiling():
            return call_operator(self, tensors, template)
        quick = self.quick.get((len(tensors), *template))
        if quick is not None and (outputs := quick(tensors, template)) is not None:
            return outputs
        return call.call(self, tensors, template)

    def simulate(self, *tensors: object, **options: object) -> SimulationResult:
        """Run the kernel on the simulator and return outputs and findings; never raises for findings.

        `check numerics schedule seed device jobs executor max_steps` as in `warpsmith.simulate`; other keywords are template
        parameters.
        """
        return call.simulate(self, tensors, options)

    def foreign(self, keywords: dict[str, Any]) -> Foreign:
        """Return the kernel with these keywords as a foreign function of XLA."""
        return foreign(self, keywords)

    def run(self, tensors: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run as a call does, unseen by automatic differentiation: what the kernel's operator does."""
        return call.run(self, tensors, keywords)

    def __repr__(self) -> str:
        return f"<kernel {self.__name__} {self.configuration.arch}>"


@overload
def kernel(fn: Callable[..., object]) -> Kernel: ...
@overload
def kernel(
    fn: None = None, *, arch: str = "sm_90a", version: tuple[int, int] | None = None, in_specs: Sequence[Tile] | None = None,
    out_specs: Sequence[Tile] | None = None, grid: Grid | None = None, block: Sequence[int] | None = None,
    cluster: Sequence[int] | None = None, smem: int = 0, raw_params: Sequence[tuple[str, str]] | None = None,
    extern_smem: bool | str = False, reqntid: Sequence[int] | None = None,
    raw_directives: Sequence[tuple[str, Sequence[int]]] | None = None,
) -> Callable[[Callable[..., object]], Kernel]: ...  # fmt: skip
def kernel(
    fn: Callable[..., object] | None = None, *, arch: str = "sm_90a", version: tuple[int, int] | None = None,
    in_specs: Sequence[Tile] | None = None, out_specs: Sequence[Tile] | None = None, grid: Grid | None = None,
    block: Sequence[int] | None = None, cluster: Sequence[int] | None = None, smem: int = 0,
    raw_params: Sequence[tuple[str, str]] | None = None, extern_smem: bool | str = False, reqntid: Sequence[int] | None = None,
    raw_directives: Sequence[tuple[str, Sequence[int]]] | None = None,
) -> Kernel | Callable[[Callable[..., object]], Kernel]:  # fmt: skip
    """Turn a function into a kernel.

    Positional parameters of the function are tensors (inputs as in `in_specs`, then outputs as in `out_specs`), keyword-only
    ones are template parameters. `grid` is a tuple or a function of the named dimensions. `smem` is bytes of dynamic shared
    memory that the body lays out itself from `smem.base()`; `extern_smem` may name it. `version` is the PTX version, by
    default the lowest that has the architecture and every instruction used. With `raw_directives` exactly those are put on
    the entry; without, `.reqntid` with the block and, for a cluster, its size.
    """
    if not isinstance(arch, str):
        raise InputError(f'kernel: arch is a name such as "sm_90a", not {arch!r}')
    if arch != "auto":
        parse_arch(arch)
    if version is not None and not _is_pair(version):
        raise InputError(f"kernel: version is a pair such as (8, 0), not {version!r}")
    if version is not None and arch != "auto" and tuple(version) < first_ptx_version(arch):
        major, minor = first_ptx_version(arch)
        raise InputError(f"PTX {version[0]}.{version[1]} does not have {arch}; the first version is {major}.{minor}")
    for what, specs in (("in_specs", in_specs), ("out_specs", out_specs)):
        if specs is not None and not isinstance(specs, (tuple, list)):
            raise InputError(f"kernel: {what} is a tuple of Tiles, not {type(specs).__name__}; a single one is written (tile,)")
        for t in specs or ():
            if not isinstance(t, Tile):
                raise InputError(f"kernel: {what} holds Tiles, got {t!r}")
    if not isinstance(smem, int) or smem < 0:
        raise InputError(f"kernel: smem is a number of bytes, not {smem!r}")
    for what, pairs in (("raw_params", raw_params), ("raw_directives", raw_directives)):
        if pairs is not None and not (
            isinstance(pairs, (tuple, list)) and all(isinstance(p, (tuple, list)) and len(p) == 2 for p in pairs)
        ):
            raise InputError(f"kernel: {what} is a list of pairs, not {pairs!r}")
    one = (1, 1, 1)
    configuration = Configuration(
        arch=arch, version=None if version is None else (version[0], version[1]), in_specs=tuple(in_specs or ()),
        out_specs=tuple(out_specs or ()), grid=grid if grid is None or callable(grid) else triple("grid", grid),
        block=triple("block", block or (1, 1, 1)), block_given=block is not None,
        cluster=triple("cluster", one if cluster is None else cluster), smem=smem,
        raw_params=tuple(raw_parameter(kind, name) for kind, name in raw_params or ()),
        extern_smem=extern_smem, reqntid=None if reqntid is None else triple("reqntid", reqntid),
        raw_directives=None if raw_directives is None else tuple((n, tuple(a)) for n, a in raw_directives),
    )  # fmt: skip
    return _decorate(fn, configuration) if fn is not None else lambda f: _decorate(f, configuration)


def _is_pair(version: object) -> bool:
    return isinstance(version, (tuple, list)) and len(version) == 2 and all(isinstance(v, int) for v in version)


def _decorate(fn: Callable[..., object], configuration: Configuration) -> Kernel:
    if not inspect.isfunction(fn):
        raise InputError(f"kernel: a function is decorated, not {type(fn).__name__}; write @kernel(…) above a def")
    return Kernel(fn, configuration)
