"""The variables of a module in global and constant memory: addresses and initial values (PTX ISA 5.4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.assembly.ptx.tree import Immediate, Initializer, Variable
from warpsmith.base.errors import InputError
from warpsmith.base.ptx_types import TYPES
from warpsmith.simulator.arguments import as_elements
from warpsmith.simulator.constants import constant_bits
from warpsmith.simulator.layout import align_of, each_variable, element_of, size_of
from warpsmith.simulator.memory import CONST_WINDOW, GLOBAL_BASE, Allocation, GlobalMemory, Space
from warpsmith.simulator.names import variables_in
from warpsmith.simulator.scope import Symbol

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.module import Module

__all__ = ["ModuleVariables"]


@final
class ModuleVariables:
    """Variables of a module, laid out in a global memory and a constant space of their own."""

    def __init__(self, module: Module, memory: GlobalMemory) -> None:
        self.memory = memory
        self.symbols: dict[str, Symbol] = {}
        self.by_node: dict[int, Symbol] = {}
        """Variables that stand inside functions, by the identity of their node."""
        self.placed: list[tuple[Variable, Symbol]] = []
        self.sizes: dict[str, int] = {}
        self.module = module
        outer = list(each_variable(module.items))
        inner = [v for f in module.functions() for v in variables_in(f.body or [])]
        constants = [v for v in (*outer, *inner) if v.space.startswith("const")]
        self.const = Space("const", 1 << max(7, sum(size_of(v) + align_of(v) for v in constants).bit_length()))
        self.const.shadow[:-32] = 8
        self._top = 0
        for v in outer:
            self._place(v, named=True)
        for v in inner:
            self._place(v, named=False)
        for v in (*outer, *inner):
            self._initialise(v)

    def read(self, name: str) -> Any:
        """Return a copy of a global variable's bytes; raise `InputError` for an unknown one."""
        symbol = self.symbols.get(name)
        if symbol is None or symbol.space != "global":
            known = ", ".join(n for n, s in self.symbols.items() if s.space == "global") or "none"
            raise InputError(f"no global variable `{name}`; the modules loaded have: {known}")
        start = symbol.address - GLOBAL_BASE
        return self.memory.data[start : start + self.sizes[name]].copy()

    def write(self, name: str, value: Any) -> None:
        """Set a global variable from an array of its size in bytes."""
        data = as_elements(value, None, f"global variable `{name}`").reshape(-1).view(np.uint8)
        held = self.read(name)
        if data.size != held.size:
            raise InputError(f"global variable `{name}` has {held.size} bytes; {data.size} were given")
        start = self.symbols[name].address - GLOBAL_BASE
        self.memory.data[start : start + data.size] = data

    def values(self) -> dict[str, Any]:
        """Return what the global variables hold, as bytes by name."""
        data = self.memory.data
        out: dict[str, Any] = {}
        for name, symbol in self.symbols.items():
            if symbol.space == "global":
                start = symbol.address - GLOBAL_BASE
                out[name] = data[start : start + self.sizes[name]].copy()
        return out

    def _place(self, v: Variable, *, named: bool) -> None:
        size = size_of(v)
        if v.space.startswith("global"):
            if v.linkage == "extern" and size == 0:
                raise InputError(f"variable `{v.name}` is extern and of unknown size; define it in the module")
            address = self.memory.allocate(f"variable `{v.name}`", size, align=align_of(v)) + GLOBAL_BASE
            symbol = Symbol("global", address, element_of(v))
        elif v.space.startswith("const"):
            align = max(align_of(v), 1)
            start = -(-self._top // align) * align
            self._top = start + size
            self.const.shadow[start : start + size] = 0
            self.const.allocations.append(Allocation(f"constant `{v.name}`", start, size))
            symbol = Symbol("const", start, element_of(v))
        else:
            return
        self.by_node[id(v)] = symbol
        self.placed.append((v, symbol))
        if named:
            self.symbols[v.name] = symbol
            self.sizes[v.name] = size

    def _initialise(self, v: Variable) -> None:
        symbol = self.by_node.get(id(v))
        if symbol is None or v.initializer is None:
            return
        where = self.memory.data if symbol.space == "global" else self.const.data
        start = symbol.address - (GLOBAL_BASE if symbol.space == "global" else 0)
        shape = [e or 0 for e in v.shape]
        if v.vector > 1:
            shape.append(v.vector)
        self._fill(where, start, v, v.initializer, shape)

    def _fill(self, where: np.ndarray, start: int, v: Variable, init: Initializer, shape: list[int]) -> None:
        width = max(8, TYPES[v.type].bits) // 8
        if init.leaves is None:
            data = self._leaf(v, init)
            where[start : start + len(data)] = np.frombuffer(data, np.uint8)
            return
        inner = shape[1:]
        stride = width
        for extent in inner:
            stride *= extent
        for i, leaf in enumerate(init.leaves):
            self._fill(where, start + i * stride, v, leaf, inner)

    def _leaf(self, v: Variable, init: Initializer) -> bytes:
        t = TYPES[v.type]
        if init.symbol:
            value = self._address(init) + init.offset
            if init.mask is not None:
                shift = (init.mask & -init.mask).bit_length() - 1
                return ((value & init.mask) >> shift & 0xFF).to_bytes(1, "little")
            return (value & (1 << t.bits) - 1).to_bytes(t.bits // 8, "little")
        if init.value is None:
            raise InputError(f"variable `{v.name}`: cannot tell the value of `{init.text}`")
        kind = "int" if isinstance(init.value, int) else "f32" if init.text[:2].lower() == "0f" else "f64"
        return constant_bits(Immediate(init.text, init.value, kind), t)

    def _address(self, init: Initializer) -> int:
        found = self.symbols.get(init.symbol)
        if found is not None:
            return found.address + (CONST_WINDOW if init.generic and found.space == "const" else 0)
        if any(f.name == init.symbol for f in self.module.functions()):
            return function_address(self.module, init.symbol)
        raise InputError(f"initialiser names `{init.symbol}`, which is no variable of the module")


def function_address(module: Module, name: str) -> int:
    """Return the address of function `name`, with or without a body: 16 times its index, from 1."""
    names = list(dict.fromkeys(f.name for f in module.functions()))
    return 16 * (names.index(name) + 1)
