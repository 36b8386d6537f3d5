"""Which architecture a cubin is for, and whether a device runs it: judged before the driver sees it.

`e_flags` of the ELF header holds the number of the architecture: bits 15:8 with OSABI 0x41 (CUDA 13), bits 7:0 with OSABI
0x33 (before). The suffix `a` or `f` is not there; the note that ptxas leaves (`-arch sm_90a`) has it.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from warpsmith.base.arch import ARCHITECTURES, Arch, parse_requirement
from warpsmith.base.errors import InputError, LaunchError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["arch_of", "check_image", "runs_on"]

_ELF, _CUDA_MACHINE = b"\x7fELF", 190
_FATBIN = b"\x50\xed\x55\xba"
_NUMBER: dict[int, Callable[[int], int]] = {0x41: lambda flags: flags >> 8 & 0xFF, 0x33: lambda flags: flags & 0xFF}
"""EI_OSABI -> number of the architecture in e_flags."""
_NOTE = re.compile(rb"-arch (sm_\d+[af]?)\b")


def arch_of(image: bytes, name: str = "cubin") -> Arch:
    """Return the architecture of a cubin; raise `InputError` for what is no cubin."""
    if image[:4] == _FATBIN:
        raise InputError(f"{name}: a fatbin holds several images; give the cubin of this GPU, or the PTX")
    if image[:4] != _ELF or len(image) < 64 or image[4] != 2:
        raise InputError(f"{name}: not a cubin: {len(image)} bytes that start with {image[:4]!r} instead of {_ELF!r}")
    machine, abi, flags = struct.unpack_from("<H", image, 18)[0], image[7], struct.unpack_from("<I", image, 48)[0]
    if machine != _CUDA_MACHINE or abi not in _NUMBER:
        raise InputError(f"{name}: an ELF file of machine {machine}, OSABI {abi:#x}; a cubin has machine 190, 0x33 or 0x41")
    number = _NUMBER[abi](flags)
    noted = {m.decode() for m in _NOTE.findall(image)}
    suffixes = {a[-1] if a[-1] in "af" else "" for a in noted if re.fullmatch(rf"sm_{number}[af]?", a)}
    return Arch(number, suffixes.pop() if len(suffixes) == 1 else "")


def runs_on(image: Arch, device: int) -> bool:
    """Say whether machine code for `image` runs on a device of compute capability `device` (90 for 9.0).

    Without suffix: the same major and the same or a later minor version (CUDA programming guide, binary compatibility);
    `a`: that one alone; `f`: the members of the family (PTX ISA 11.1.2).
    """
    if image.suffix == "a":
        return image.number == device
    if image.suffix == "f":
        return parse_requirement(str(image)).allows(Arch(device, "a"))
    return image.number // 10 == device // 10 and image.number <= device


def check_image(image: bytes, device: int, device_name: str, name: str) -> Arch:
    """Return the image's architecture; raise `LaunchError` when the device does not run it."""
    arch = arch_of(image, name)
    if not runs_on(arch, device):
        own = f"sm_{device}a" if f"sm_{device}a" in ARCHITECTURES else f"sm_{device}"
        raise LaunchError(
            f"{name} is compiled for {arch}, and {device_name} is sm_{device}; compile the PTX for it (arch={own!r}, "
            f"or --arch {own})",
            209,
        )
    return arch
