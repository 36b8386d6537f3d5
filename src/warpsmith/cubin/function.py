"""A function of a cubin: one `.text.<name>` section with everything that belongs to it by name, symbol or number."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import CubinError
from warpsmith.cubin.arch_flags import arch_number
from warpsmith.cubin.edit import replace_code
from warpsmith.cubin.elf import ET_EXEC
from warpsmith.cubin.info import Attribute, InfoTable
from warpsmith.cubin.lines import function_lines
from warpsmith.cubin.moves import Moves
from warpsmith.cubin.parameters import read_parameters
from warpsmith.cubin.section import Reserved, is_capsule
from warpsmith.cubin.symbols import STT_FUNC

if TYPE_CHECKING:
    from warpsmith.cubin.lines import Line
    from warpsmith.cubin.model import Cubin
    from warpsmith.cubin.moves import Moved
    from warpsmith.cubin.parameters import Parameter
    from warpsmith.cubin.section import Section
    from warpsmith.cubin.symbols import Symbol

__all__ = ["CapsuleWarning", "Function"]

RESERVED_SHARED = 0x400
"""Bytes at the start of shared memory that the system keeps from sm_90 on; a kernel's `.nv.shared` section counts them."""
_REGISTER_SHIFT, _SYMBOL_MASK = 24, 0xFFFFFF
_BARRIER_SHIFT, _BARRIER_MASK = 20, 0x7F


class CapsuleWarning(UserWarning):
    """The second form of the code, which sm_100 and later carry, was left out because it no longer said what the code says."""


@final
class Function:
    """A view of one function; what it sets is set in the cubin."""

    __slots__ = ("_cubin", "name", "section")

    def __init__(self, cubin: Cubin, section: Section, name: str) -> None:
        self._cubin, self.section, self.name = cubin, section, name

    def __repr__(self) -> str:
        return f"<Function {self.name} of {self._cubin.arch}, {len(self.code)} bytes>"

    @property
    def code(self) -> bytes:
        """The machine code, with the padding behind it."""
        return self.section.data

    @property
    def symbol(self) -> Symbol:
        """The function's symbol."""
        return self._cubin.symbols[self._symbol_number]

    @property
    def _symbol_number(self) -> int:
        table = self._cubin.symbols
        number = self.section.info & _SYMBOL_MASK
        if number < len(table) and table[number].name == self.name:
            return number
        found = next((i for i, s in enumerate(table) if s.name == self.name and s.type == STT_FUNC), None)
        if found is None:
            raise CubinError(f"function {self.name!r} has no symbol", section=self.section.name)
        return found

    @property
    def is_entry(self) -> bool:
        """Whether it is a kernel, as against a device function."""
        return self.symbol.is_entry

    @property
    def info(self) -> InfoTable:
        """The attributes of `.nv.info.<name>`; an empty table where there is no such section."""
        section = self._part(".nv.info.")
        return section.holds(InfoTable) if section else InfoTable([])

    @property
    def params(self) -> list[Parameter]:
        """The kernel's parameters: place, byte offset, size."""
        return read_parameters(self.info.attributes)

    @property
    def registers(self) -> int:
        """Registers a thread takes."""
        if (attribute := self._module_attribute("REGCOUNT")) is not None:
            return attribute.words()[1] & 0xFFFF
        return self.section.info >> _REGISTER_SHIFT

    @registers.setter
    def registers(self, count: int) -> None:
        if not 1 <= count <= 255:
            raise CubinError(f"{count} registers; a thread has 1 to 255")
        if (attribute := self._module_attribute("REGCOUNT")) is not None:
            attribute.payload = attribute.payload[:4] + count.to_bytes(4, "little")
        if attribute is None or self.section.info >> _REGISTER_SHIFT:
            self.section.info = self.section.info & _SYMBOL_MASK | count << _REGISTER_SHIFT

    @property
    def barriers(self) -> int:
        """Barriers (`bar.sync` numbers) a CTA takes."""
        if (attribute := self.info.get("NUM_BARRIERS")) is not None:
            return attribute.payload[0]
        return self.section.flags >> _BARRIER_SHIFT & _BARRIER_MASK

    @barriers.setter
    def barriers(self, count: int) -> None:
        if not 0 <= count <= 16:
            raise CubinError(f"{count} barriers; a CTA has at most 16")
        in_flags = self.section.flags >> _BARRIER_SHIFT & _BARRIER_MASK
        if (attribute := self.info.get("NUM_BARRIERS")) is not None:
            attribute.payload = bytes((count, 0))
        elif not in_flags:
            self.info.attributes.append(Attribute.byte("NUM_BARRIERS", count))
        if in_flags:
            self.section.flags = self.section.flags & ~(_BARRIER_MASK << _BARRIER_SHIFT) | count << _BARRIER_SHIFT

    @property
    def shared(self) -> int:
        """Bytes of static shared memory that the kernel declares, without what the system keeps."""
        section = self._part(".nv.shared.")
        return max(0, section.size - self._reserved_shared) if section else 0

    @shared.setter
    def shared(self, size: int) -> None:
        section = self._part(".nv.shared.")
        if section is None:
            raise CubinError(
                f"{self.name!r} has no section .nv.shared.{self.name}; only kernels with static shared memory can change it"
            )
        section.holds(Reserved).size = size + self._reserved_shared

    @property
    def _reserved_shared(self) -> int:
        linked = self._cubin.header.type == ET_EXEC  # an object file's section does not count it yet
        return RESERVED_SHARED if linked and arch_number(self._cubin.header) >= 90 else 0

    @property
    def stack(self) -> int:
        """Bytes of stack a thread takes at least, with what it calls."""
        attribute = self._module_attribute("MIN_STACK_SIZE")
        return attribute.words()[1] if attribute else 0

    @property
    def local(self) -> int:
        """Bytes of local memory in the function's own frame."""
        attribute = self._module_attribute("FRAME_SIZE")
        return attribute.words()[1] if attribute else 0

    @property
    def constants(self) -> dict[int, bytes]:
        """Constant banks of the function, by number; bank 0 holds launch dimensions and parameters."""
        out: dict[int, bytes] = {}
        for bank in range(18):
            if section := self._part(f".nv.constant{bank}."):
                out[bank] = section.data
        return out

    @property
    def lines(self) -> list[Line]:
        """Source lines of the code (`.debug_line`): from each offset on, up to the next one."""
        return function_lines(self._cubin, self.section, ".debug_line")

    def line_at(self, offset: int) -> Line | None:
        """Return the source line of the instruction at a byte offset of the code; None before the first line that is known."""
        if not 0 <= offset < len(self.code):
            raise CubinError(f"offset {offset:#x} lies outside the {len(self.code)} bytes of code of {self.name!r}")
        rows = self.lines
        at = bisect_right([row.offset for row in rows], offset)
        return rows[at - 1] if at else None

    @property
    def ptx_lines(self) -> list[Line]:
        """The same for the lines of the PTX (`.nv_debug_line_sass`)."""
        return function_lines(self._cubin, self.section, ".nv_debug_line_sass")

    def replace(self, code: bytes, moved: Moved = None, *, capsule: str = "drop") -> None:
        """Give the function other code, and move everything that refers to places in it.

        `moved` says where the instruction at an old byte offset stands in `code`: a mapping, or a callable such as
        `ws.cubin.shifted(…)`; None stands for "gone". Without it the code keeps its length and its instructions their places.
        Branches inside `code` are the caller's. `capsule`: "drop" leaves out the second form of the code that sm_100 and later
        carry (`CapsuleWarning`), "keep" leaves it as it is, saying what the code was. Raises `CubinError`, with the cubin
        unchanged, where something refers to the code in a way that cannot be moved.
        """
        width = 16 if arch_number(self._cubin.header) >= 70 else 8
        if not code or len(code) % width:
            raise CubinError(f"the code of {self.name!r} has {len(code)} bytes, not a multiple of {width}")
        if capsule not in ("drop", "keep"):
            raise CubinError(f"capsule={capsule!r}; write 'drop' or 'keep'")
        replace_code(self._cubin, self.section, bytes(code), Moves(self.name, moved, len(self.code), len(code), width))
        if capsule == "drop" and any(is_capsule(s) for s in self._cubin.sections):
            self._cubin.drop_capsules()
            warnings.warn(
                f"{self.name}: the capsules of the cubin were left out, because they hold the code as it was; "
                "capsule='keep' keeps them",
                CapsuleWarning,
                stacklevel=2,
            )

    def _part(self, prefix: str) -> Section | None:
        return self._cubin.sections.find(prefix + self.name)

    def _module_attribute(self, name: str) -> Attribute | None:
        section = self._cubin.sections.find(".nv.info")
        number = self._symbol_number
        table = section.holds(InfoTable) if section else InfoTable([])
        return next((a for a in table.all(name) if len(a.payload) >= 8 and a.words()[0] == number), None)
