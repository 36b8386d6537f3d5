"""Tensor parameters inside a kernel body: `TensorSpec` and the handle of its TMA descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never, final

from warpsmith.base.layout import Layout
from warpsmith.base.place import error
from warpsmith.base.tile import Tile
from warpsmith.dsl.dimension import Dimension
from warpsmith.dsl.trace import current

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warpsmith.base.ptx_types import PtxType
    from warpsmith.dsl.registers import Reg

__all__ = ["TensorSpec", "TmaDescriptorHandle"]


@final
class TmaDescriptorHandle:
    """The TMA descriptor of a tensor: `src=` of loads, `dst=` of stores. A kernel parameter of 128 bytes."""

    __slots__ = ("name", "pointer", "tensor")

    def __init__(self, tensor: TensorSpec, name: str, pointer: Reg) -> None:
        self.tensor = tensor
        self.name = name
        """Name of the parameter."""
        self.pointer = pointer
        """Register with its generic address."""

    def location(self) -> tuple[Reg | str, int]:
        """Return (register with the descriptor's generic address, 0)."""
        return self.pointer, 0


@final
class TensorSpec:
    """A tensor parameter: `.name .shape .dtype .layout`, `.tma_desc()`, `ptx.global_ptrs(T)`."""

    __slots__ = ("_descriptor", "_env", "name", "pointer_used", "shape_used", "tile")

    def __init__(
        self, name: str, shape: Sequence[int | str], dtype: PtxType, layout: Layout = Layout.ROW, *, tile: Tile | None = None,
        env: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.tile = Tile(*shape, dtype, layout) if tile is None else tile
        self._env = dict(env or {})
        self._descriptor: TmaDescriptorHandle | None = None
        self.pointer_used = False
        self.shape_used = False

    @classmethod
    def of_tile(cls, name: str, tile: Tile, env: Mapping[str, int]) -> TensorSpec:
        """Return the parameter `name` as `tile` of a kernel describes it; `env` gives named dimensions their values."""
        return cls(name, tile.dims, tile.dtype, tile.layout, tile=tile, env=env)

    @property
    def shape(self) -> tuple[int | str, ...]:
        """The dimensions; names are replaced where the call or `k.ptx(M=…)` gives their value.

        A name without a value stays a text; to calculate with it is a `KernelError`.
        """
        self.shape_used = True
        return tuple(self._env.get(d, Dimension(d)) if isinstance(d, str) else d for d in self.tile.dims)

    @property
    def dtype(self) -> PtxType:
        """Element type."""
        return self.tile.dtype

    @property
    def layout(self) -> Layout:
        """Memory layout."""
        return self.tile.layout

    @property
    def descriptor_name(self) -> str:
        """Name of the descriptor's parameter, '' when the body does not use one."""
        return self._descriptor.name if self._descriptor else ""

    def __getitem__(self, index: object) -> Never:
        raise error(
            f"`{self.name}` is a tensor in global memory, and Python cannot index it",
            f"load from its address: (p,) = ptx.global_ptrs({self.name}); ptx.inst.ld.global_.{self.tile.dtype.name}"
            "(register, ptx.addr(p, bytes))",
        )

    def location(self) -> tuple[Reg | str, int]:
        """Return (parameter name, 0): `ptx.addr(A)` is the parameter itself."""
        self.pointer_used = True
        return self.name, 0

    def tma_desc(self) -> TmaDescriptorHandle:
        """Return the handle of the tensor's TMA descriptor; its address is loaded once, at the kernel's start."""
        if self._descriptor is None:
            self.tile.check_descriptor(self._env)
            trace = current()
            name = f"{self.name}_tma"
            trace.declare_parameter(name, "b8")
            pointer = trace.root_register("u64")
            trace.emit_first("mov.b64", (pointer, name))
            trace.emit_first("cvta.param.u64", (pointer, pointer))
            self._descriptor = TmaDescriptorHandle(self, name, pointer)
        return self._descriptor
