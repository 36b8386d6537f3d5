"""Which architecture a cubin is for, in both layouts of its header, and which devices run it."""

from __future__ import annotations

import re
import struct

import pytest

from warpsmith.base.arch import parse_arch
from warpsmith.base.errors import InputError, LaunchError
from warpsmith.launch.image import arch_of, check_image, runs_on


def header(abi: int, flags: int, note: bytes = b"", machine: int = 190) -> bytes:
    data = bytearray(64)
    data[:5], data[7] = b"\x7fELF\x02", abi
    struct.pack_into("<H", data, 18, machine)
    struct.pack_into("<I", data, 48, flags)
    return bytes(data) + note


@pytest.mark.parametrize(
    ("abi", "flags", "note", "arch"),
    [
        (0x41, 0x6005A04, b"\0-arch sm_90a \0", "sm_90a"),
        (0x41, 0x6005A04, b"\0-arch sm_90 \0", "sm_90"),
        (0x41, 0x6006402, b"\0-arch sm_100f \0", "sm_100f"),
        (0x41, 0x6005004, b"", "sm_80"),
        (0x33, 0x5A055A, b"-arch sm_90a -v", "sm_90a"),
        (0x33, 0x500550, b"", "sm_80"),
        (0x41, 0x6005A04, b"-arch sm_90 \0-arch sm_90a ", "sm_90"),
    ],
)
def test_architecture_of_a_cubin(abi: int, flags: int, note: bytes, arch: str) -> None:
    assert str(arch_of(header(abi, flags, note))) == arch


@pytest.mark.parametrize(
    ("image", "runs", "fails"),
    [
        ("sm_80", (80, 86, 87, 89), (75, 90, 100)),
        ("sm_86", (86, 89), (80, 90)),
        ("sm_90", (90,), (89, 100)),
        ("sm_90a", (90,), (100, 120)),
        ("sm_100", (100, 103), (90, 110, 120)),
        ("sm_100a", (100,), (103, 120)),
        ("sm_100f", (100, 103), (90, 110, 120)),
        ("sm_120f", (120, 121), (100,)),
    ],
)
def test_devices_that_run_an_image(image: str, runs: tuple[int, ...], fails: tuple[int, ...]) -> None:
    assert [d for d in (*runs, *fails) if runs_on(parse_arch(image), d)] == list(runs)


def test_an_image_for_another_architecture_is_refused_by_name() -> None:
    message = (
        "k.cubin is compiled for sm_80, and NVIDIA H200 is sm_90; compile the PTX for it (arch='sm_90a', or --arch sm_90a)"
    )
    with pytest.raises(LaunchError, match=f"^{re.escape(message)}$") as caught:
        check_image(header(0x41, 0x6005004), 90, "NVIDIA H200", "k.cubin")
    assert caught.value.code == 209


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PTX text", r"k: not a cubin: 8 bytes that start with b'PTX ' instead of b'\x7fELF'"),
        (b"\x50\xed\x55\xba" + bytes(80), "k: a fatbin holds several images; give the cubin of this GPU, or the PTX"),
        (header(0, 0, machine=62), "k: an ELF file of machine 62, OSABI 0x0; a cubin has machine 190, 0x33 or 0x41"),
    ],
)
def test_what_is_no_cubin_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        arch_of(data, "k")
    assert str(caught.value) == message
