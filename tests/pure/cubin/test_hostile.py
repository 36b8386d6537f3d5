"""Damaged and hostile files: our own errors, in full, with the byte and the section; and a seeded share of the fuzzing."""

from __future__ import annotations

import struct

import pytest

from containers import container, entry, host_elf
from cubin_corpus import DATA, cubins
from cubin_fuzz import archive_seeds, find_mutant, mutants, read_cubin_mutant
from warpsmith import cubin as ws_cubin
from warpsmith.base.errors import CubinError

CUBIN = cubins()["ptxas-13.5-sm_80"]
(TABLE,) = struct.unpack_from("<Q", CUBIN, 40)
NAMES = [s.name for s in ws_cubin.open(CUBIN).sections]


def patched(at: int, layout: str, value: int) -> bytes:
    data = bytearray(CUBIN)
    struct.pack_into(layout, data, at, value)
    return bytes(data)


def row(name: str, field: int) -> int:
    return TABLE + 64 * NAMES.index(name) + field


def section_bytes(name: str) -> int:
    return struct.unpack_from("<Q", CUBIN, row(name, 24))[0]


END = f"{len(CUBIN):#x}"
COUNT = len(NAMES)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not an ELF file: it begins with nothing, not 7f 45 4c 46 (byte 0x0)"),
        (b"MZ\x90\0", "not an ELF file: it begins with 4d 5a 90 00, not 7f 45 4c 46 (byte 0x0)"),
        (CUBIN[:40], "the ELF header needs 64 bytes and the data ends at byte 0x28 (byte 0x0)"),
        (CUBIN[:4] + b"\1" + CUBIN[5:], "not a 64-bit little-endian ELF of version 1; NVIDIA's 32-bit cubins (before "
                                        "CUDA 9) are not read (byte 0x4)"),
        (
            host_elf({".text": b"\x90"}),
            "an ELF file for machine 62 (x86-64), not for NVIDIA GPUs (190); ws.cubin.find() looks for cubins inside "
            "libraries and objects "
            "(byte 0x12)",
        ),
        (patched(18, "<H", 999), "an ELF file for machine 999 (another machine), not for NVIDIA GPUs (190); "
                                 "ws.cubin.find() looks for "
                                 "cubins inside libraries and objects (byte 0x12)"),
        (patched(7, "<B", 0), "OSABI 0x0 with ABI version 8 is not known; known are 0x33 with 7 and 0x41 with 8 (byte 0x7)"),
        (patched(58, "<H", 63), "a section header is said to have 63 bytes, not 64 (byte 0x3a)"),
        (patched(60, "<H", 0xFF00), "65280 sections; at most 65279 are read (byte 0x3c)"),
        (patched(40, "<Q", 1 << 60), f"{COUNT} section headers at {1 << 60:#x} end behind the file's end at {END} (byte 0x28)"),
        (patched(60, "<H", 0), f"there is no section table that begins with the null section (byte {TABLE:#x})"),
        (patched(62, "<H", 77), "section 77 is named as the table of section names and is no string table (byte 0x3e)"),
        (
            patched(row(".text.branches", 32), "<Q", 1 << 50),
            f"section {NAMES.index('.text.branches')} at {section_bytes('.text.branches'):#x} with {1 << 50:#x} bytes "
            "ends behind the "
            f"file's end at {END} (byte {row('.text.branches', 0):#x})",
        ),
        (
            patched(row(".text.branches", 48), "<Q", 3),
            f"section {NAMES.index('.text.branches')} has alignment 0x3, not a power of two up to 1 MiB (byte "
            f"{row('.text.branches', 48):#x})",
        ),
        (
            patched(row(".text.branches", 0), "<I", 0xFFFFFF),
            f"the name of section {NAMES.index('.text.branches')} at 0xffffff does not lie in the string table of "
            f"{struct.unpack_from('<Q', CUBIN, row('.shstrtab', 32))[0]:#x} bytes (byte 0xffffff of section 'the table "
            "of section names')",
        ),
        (
            patched(row(".nv.info", 24), "<Q", section_bytes(".text.branches") + 16),
            f"section '.nv.info' overlaps section '.text.branches', which ends at "
            f"{section_bytes('.text.branches') + struct.unpack_from('<Q', CUBIN, row('.text.branches', 32))[0]:#x} "
            f"(byte {section_bytes('.text.branches') + 16:#x})",
        ),
        (
            patched(row(".nv.info", 24), "<Q", TABLE),
            f"section '.nv.info' overlaps the table of section headers, which ends at {TABLE + 64 * COUNT:#x} (byte "
            f"{TABLE:#x})",
        ),
        (
            patched(row(".symtab", 32), "<Q", 25),
            "the symbol table has 25 bytes, not a multiple of 24 (byte 0x19 of section '.symtab')",
        ),
        (
            patched(row(".symtab", 40), "<I", 3),
            "the symbol table takes its names from section 3, which is no string table (section '.symtab')",
        ),
        (
            patched(section_bytes(".nv.info"), "<B", 9),
            "attribute form 0x9 is not known; known are 1, 2, 3 and 4 (byte 0x0 of section '.nv.info')",
        ),
        (
            patched(section_bytes(".nv.info") + 2, "<H", 0xFFFF),
            "attribute 0x2f of 65535 bytes ends behind the section's end (byte 0x0 of section '.nv.info')",
        ),
        (patched(32, "<Q", 1 << 60), f"4 program headers at {1 << 60:#x} end behind the file's end at {END} (byte 0x20)"),
        (container(entry(b".version 8.0", kind=1)), "a fat binary, not a cubin; ws.cubin.find() lists what it holds "
                                                    "(byte 0x0)"),
    ],
)  # fmt: skip
def test_messages(data: bytes, message: str) -> None:
    with pytest.raises(CubinError) as caught:
        ws_cubin.open(data)
    assert str(caught.value) == message


def test_the_file_is_named(tmp_path) -> None:
    path = tmp_path / "k.cubin"
    path.write_bytes(b"text")
    with pytest.raises(CubinError) as caught:
        ws_cubin.open(path)
    assert str(caught.value) == f"{path}: not an ELF file: it begins with 74 65 78 74, not 7f 45 4c 46 (byte 0x0)"
    assert (caught.value.offset, caught.value.section, caught.value.file) == (0, None, str(path))


def test_a_ptx_only_fat_binary_has_no_cubin() -> None:
    (item,) = ws_cubin.find(container(entry(b".version 8.0\n.target sm_90\n", kind=1)))
    with pytest.raises(CubinError) as caught:
        item.cubin()
    assert str(caught.value) == "bytes: the entry holds ptx, not a cubin (byte 0x10)"


def test_what_is_missing_is_named() -> None:
    cubin = ws_cubin.open(CUBIN)
    with pytest.raises(CubinError) as caught:
        cubin.sections[".text.nothing"]
    assert str(caught.value) == (
        "there is no section '.text.nothing'; sections: .shstrtab, .strtab, .symtab, .debug_frame, .debug_line, .debug_str, "
        ".nv_debug_line_sass, .nv_debug_ptx_txt, …"
    )
    with pytest.raises(CubinError) as caught:
        cubin.symbols["nothing"]
    assert str(caught.value) == "there is no symbol 'nothing' (section '.symtab')"
    with pytest.raises(CubinError) as caught:
        ws_cubin.Attribute.byte("NO_SUCH", 1)
    assert str(caught.value) == (
        "there is no attribute 'NO_SUCH'; `cubin/attributes.txt` lists those that have a name, others are written 0x5f"
    )


def test_a_seeded_share_of_mutated_cubins() -> None:
    outcomes = [read_cubin_mutant(data) for data in mutants(list(cubins().values()), 1500, seed=1)]
    assert {outcomes.count(kind) > 5 for kind in ("refused", "read")} == {True}


def test_a_seeded_share_of_mutated_fat_binaries() -> None:
    seeds = [(DATA / name).read_bytes() for name in ("lz4.fatbin", "zstd.fatbin")] + [
        host_elf({".nv_fatbin": container(entry(CUBIN))})
    ]
    outcomes = [find_mutant(data) for data in mutants(seeds, 1500, seed=2)]
    assert {outcomes.count(kind) > 5 for kind in ("refused", "read")} == {True}


def test_a_seeded_share_of_mutated_archives() -> None:
    outcomes = [find_mutant(data) for data in mutants(archive_seeds(), 1500, seed=3)]
    assert {outcomes.count(kind) > 5 for kind in ("refused", "read")} == {True}
