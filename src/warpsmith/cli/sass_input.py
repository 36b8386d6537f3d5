"""What `warpsmith sass` reads: the functions of cubins, wherever they are found, and raw code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.table import load_table
from warpsmith.base.arch import parse_arch
from warpsmith.base.errors import CapabilityError, CubinError, InputError
from warpsmith.base.whole_file import read_whole
from warpsmith.cli.gpu_code import entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.cli.gpu_code import Faults
    from warpsmith.cubin import Cubin, Found, Function

__all__ = ["Piece", "pieces", "raw_piece"]

_MACHINES = {3: "x86", 40: "Arm", 62: "x86-64", 183: "AArch64", 224: "AMD GPU", 243: "RISC-V", 247: "BPF"}


@final
@dataclass(frozen=True, slots=True)
class Piece:
    """Code to look at: a function of a cubin, or raw bytes."""

    path: str
    offset: int
    """Byte offset of the cubin in the innermost file."""
    arch: str
    name: str
    """The function's name; '' for raw code."""
    code: bytes
    function: Function | None
    cubin: Cubin | None

    @property
    def section(self) -> str:
        """Where the code stands, for messages."""
        return f".text.{self.name}" if self.name else "raw code"


def pieces(path: str, archs: tuple[str, ...], names: tuple[str, ...], faults: Faults) -> Iterator[Piece]:
    """Yield the functions of every cubin in a file, library, archive or wheel, as they are met.

    `archs` and `names` restrict them; a name is the function's, or a part of it. What cannot be read, and architectures
    without a table, go to `faults`. Raises `InputError` where nothing is found, and says what is there instead.
    """
    seen: list[Found] = []
    given = found = False
    functions: set[str] = set()
    before = faults.count
    for item in entries(path, (), faults):
        seen.append(item) if len(seen) < 100 else None
        if item.kind != "elf" or (archs and item.arch not in archs):
            continue
        given = True
        cubin = _cubin(item, faults)
        if cubin is None:
            found = True
            continue
        for name, function in cubin.functions.items():
            if not names or any(n in name for n in names):
                found = True
                yield Piece(item.path, item.offset, cubin.arch, name, function.code, function, cubin)
            elif len(functions) < 6:
                functions.add(name)
    if not found and faults.count == before:
        raise InputError(_nothing(path, seen, archs, names, functions, given=given))


def _cubin(item: Found, faults: Faults) -> Cubin | None:
    """Return the cubin, or None for one that cannot be read or has no table, which `faults` tells of."""
    try:
        cubin = item.cubin()
    except (CubinError, CapabilityError) as error:
        faults.note(error)
        return None
    try:
        load_table(cubin.arch)
    except CapabilityError:
        faults.leave_out(cubin.arch, item.path)
        return None
    return cubin


def _nothing(
    path: str, seen: list[Found], archs: tuple[str, ...], names: tuple[str, ...], functions: set[str], *, given: bool
) -> str:
    if not seen:
        return f"{path}: no GPU code found{_machine(path)}"
    if given and names:
        return f"{path}: no function is named {' or '.join(names)}; there are {', '.join(sorted(functions)) or 'none'}"
    if given:
        return f"{path}: the cubins have no functions"
    if all(item.kind == "ptx" for item in seen):
        first = seen[0]
        return (
            f"{path}: only PTX ({first.arch or 'a PTX file'} at byte {first.offset:#x}), no machine code; "
            "`warpsmith extract` writes it to a file and `warpsmith compile` makes a cubin of it"
        )
    there = sorted({item.arch for item in seen if item.kind == "elf" and item.arch})
    return f"{path}: no cubin for {' or '.join(archs)}; there are cubins for {', '.join(there)}"


def _machine(path: str) -> str:
    """Say what an ELF file is that is no cubin."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(20)
    except OSError:
        return ""
    if head[:4] != b"\x7fELF" or len(head) < 20:
        return ""
    number = int.from_bytes(head[18:20], "little")
    return f"; it is an ELF file for {_MACHINES.get(number, f'machine {number}')} (byte 0x12), not for NVIDIA GPUs (190)"


def raw_piece(path: str, archs: tuple[str, ...]) -> Piece:
    """Return a file of bare instructions, 16 bytes each, as one piece."""
    if len(archs) != 1:
        raise InputError(f"{path}: raw code does not say what it is for; give one --arch, e.g. --arch sm_90a")
    parse_arch(archs[0])
    code = read_whole(path)
    if code[:4] == b"\x7fELF":
        raise InputError(f"{path}: an ELF file, not raw code; leave out --raw")
    if len(code) % 16:
        raise CubinError(
            f"{len(code)} bytes are not whole instructions of 16; {len(code) % 16} are left over", offset=len(code) // 16 * 16,
            file=path,
        )  # fmt: skip
    return Piece(path, 0, archs[0], "", code, None, None)
