"""A launch prepared once: every later one with arguments of the same kind only writes addresses and calls the driver.

A block is the memory a launch passes to the driver: [pointers][tensor maps, 64-byte aligned][constants], the array of
pointers to each argument, and the launch configuration with its stream. The driver copies all of it before it returns, so a
block is used by one launch at a time and then goes back to the pool; launches from several threads take several blocks.
"""

from __future__ import annotations

import ctypes
from ctypes import memmove
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, final

from warpsmith.base.tensormap import check
from warpsmith.base.tensormap_bits import encode
from warpsmith.launch.binding import DriverError
from warpsmith.launch.faults import explain_fault, explain_refusal, is_sticky

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warpsmith.base.errors import LaunchError
    from warpsmith.base.tensormap import TensorMapFields
    from warpsmith.launch.binding import LaunchShape
    from warpsmith.launch.context import Context, Function

__all__ = ["Argument", "MapArgument", "NumberArgument", "Plan", "PointerArgument"]

_ALIGN = 64
_MAPS_KEPT = 1024
_NO_CONTEXT = (201, 400)
"""CUDA_ERROR_INVALID_CONTEXT, INVALID_HANDLE: the calling thread has no context yet, or another one."""


class PointerArgument(NamedTuple):
    """An argument that is the address of a tensor, by its number."""

    tensor: int


class MapArgument(NamedTuple):
    """An argument that is a tensor map of a tensor; the address in `fields` is ignored."""

    tensor: int
    fields: TensorMapFields


class NumberArgument(NamedTuple):
    """An argument that each launch is given: `size` bytes, which `pack` makes of value number `number`."""

    number: int
    size: int
    pack: Callable[[Any], bytes]


Argument = PointerArgument | MapArgument | NumberArgument | bytes
"""Bytes are passed as they are."""


@final
class _Block:
    __slots__ = ("config", "first", "mapped", "memory", "parameters", "start", "stream", "table")

    def __init__(self, memory: Any, start: int, table: Any, config: Any, maps: int) -> None:
        self.memory, self.start, self.table, self.config = memory, start, table, config
        self.first, self.parameters = ctypes.addressof(memory) + start, ctypes.addressof(table)
        self.stream = 0
        self.mapped = [-1] * maps
        """Address whose tensor map stands in each place."""


@final
class Plan:
    """One kernel with one launch shape and kinds of arguments on one device."""

    __slots__ = (
        "_arguments", "_constants", "_offsets", "_size", "context", "describe", "dumped", "function", "launch", "launchable",
        "maps", "numbers", "pack", "pool", "shape", "values",
    )  # fmt: skip

    def __init__(
        self, context: Context, function: Function, shape: LaunchShape, arguments: Sequence[Argument], tensors: int,
        describe: Callable[[Sequence[Any]], str],
    ) -> None:  # fmt: skip
        """`tensors` is how many addresses `run` is given; `describe(values)` says how to run such a launch on the simulator."""
        self.context, self.function, self.shape, self.describe = context, function, shape, describe
        self.dumped = ""
        """Where the inputs of the latest launch were kept."""
        self.values: Sequence[Any] = ()
        """Values of the latest launch."""
        self._arguments = tuple(arguments)
        self.pack = Struct(f"<{tensors}Q").pack_into
        self._lay_out(8 * tensors)
        self.launch, self.launchable = context.driver.launch, context.driver.launchable(function.handle)
        self.pool: list[_Block] = []
        """Blocks that no launch uses."""
        before = context.enter()
        try:
            function.allow(shape.dynamic_shared, shape.cluster[0] * shape.cluster[1] * shape.cluster[2])
        except DriverError as failure:
            raise self._explained(failure) from None
        finally:
            context.leave(before)

    def _lay_out(self, top: int) -> None:
        self._offsets: list[int] = []
        self.maps: list[tuple[int, int, MapArgument, dict[int, bytes]]] = []
        self.numbers: list[tuple[int, NumberArgument]] = []
        self._constants: list[tuple[int, bytes]] = []
        for a in self._arguments:
            if isinstance(a, PointerArgument):
                self._offsets.append(8 * a.tensor)
                continue
            size = 128 if isinstance(a, MapArgument) else a.size if isinstance(a, NumberArgument) else len(a)
            top = -(-top // _ALIGN) * _ALIGN if size >= _ALIGN else -(-top // 16) * 16
            self._offsets.append(top)
            if isinstance(a, MapArgument):
                self.maps.append((len(self.maps), top, a, {}))
            elif isinstance(a, NumberArgument):
                self.numbers.append((top, a))
            else:
                self._constants.append((top, a))
            top += size
        self._size = top

    def fresh_block(self) -> _Block:
        """Return a block whose constants are written."""
        memory = ctypes.create_string_buffer(self._size + _ALIGN)
        base = ctypes.addressof(memory)
        start = -base % _ALIGN
        for offset, data in self._constants:
            memmove(base + start + offset, data, len(data))
        table = (ctypes.c_void_p * max(1, len(self._offsets)))(*[base + start + o for o in self._offsets])
        return _Block(memory, start, table, self.context.driver.config(self.shape), len(self.maps))

    def run(self, pointers: Sequence[int], stream: int, values: Sequence[Any] = ()) -> None:
        """Launch with the addresses of the tensors, in order, and values. Nothing here waits or allocates device memory."""
        try:
            block = self.pool.pop()
        except IndexError:
            block = self.fresh_block()
        self.pack(block.memory, block.start, *pointers)
        for place, _, argument, _ in self.maps:
            if block.mapped[place] != pointers[argument.tensor]:
                self.write_map(block, place, pointers[argument.tensor])
        for offset, number in self.numbers:
            memmove(block.first + offset, number.pack(values[number.number]), number.size)
        self.values = values
        if block.stream != stream:
            self.context.driver.set_stream(block.config, stream)
            block.stream = stream
        context = self.context
        context.recent.append(self)
        if context.alone:
            status: int = self.launch(block.config, self.launchable, block.parameters, 0)[0]
            if status:
                status = self.again(block, status)
        else:
            status = self.inside(block)
        self.pool.append(block)
        if status:
            raise self.failure(int(status))

    def write_map(self, block: _Block, place: int, address: int) -> None:
        """Write the tensor map of the tensor at an address into its place of a block."""
        _, offset, argument, known = self.maps[place]
        data = known.get(address) or self._encode(argument, address, known)
        memmove(block.first + offset, data, 128)
        block.mapped[place] = address

    def _encode(self, argument: MapArgument, address: int, known: dict[int, bytes]) -> bytes:
        fields = argument.fields.at(address)
        check(fields, self.context.capability)
        if len(known) >= _MAPS_KEPT:
            known.clear()
        data = known[address] = self.context.driver.encode_tensor_map(fields)
        return data

    def tensor_maps(self) -> list[tuple[bytes, bytes]]:
        """Return every tensor map made so far: by our own encoder, and by the driver."""
        return [(encode(a.fields.at(address)), data) for _, _, a, known in self.maps for address, data in known.items()]

    def inside(self, block: _Block) -> int:
        """Launch with the device's context current."""
        before = self.context.enter()
        try:
            return self.launch(block.config, self.launchable, block.parameters, 0)[0]
        finally:
            self.context.leave(before)

    def again(self, block: _Block, status: int) -> int:
        """Launch once more where the first attempt only lacked the context; a refused launch has had no effect."""
        if status in _NO_CONTEXT and self.context.driver.current_context() != self.context.handle:
            return self.inside(block)
        return status

    def failure(self, status: int) -> Exception:
        """Return the error to raise for a launch that failed."""
        if is_sticky(status):
            self.context.recent.pop()
        return self._explained(self.context.driver.failure("cuLaunchKernelEx", status))

    def _explained(self, failure: LaunchError) -> LaunchError:
        return explain_fault(failure, self.context) if is_sticky(failure.code) else explain_refusal(failure, self)
