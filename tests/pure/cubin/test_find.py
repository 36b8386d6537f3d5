"""What `find` finds, where, and how it comes out."""

from __future__ import annotations

import io
import os
import zipfile

import pytest

from containers import LZ4, ar, container, entry, host_elf
from cubin_corpus import DATA, cubins
from warpsmith import cubin as ws_cubin
from warpsmith.base.errors import CapabilityError, CubinError, InputError
from warpsmith.cubin import compression

CUBIN = cubins()["ptxas-13.5-sm_90a"]
PTX = b"//\n// made by hand\n.version 8.8\n.target sm_90\n.address_size 64\n"
TWO = container(entry(CUBIN, flags=0x100011), entry(PTX, kind=1, header=112))


def found(source) -> list[tuple[str, str | None, str | None, int]]:
    return [(f.kind, f.arch, f.section, f.offset) for f in ws_cubin.find(source)]


def wheel(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), data)
    return out.getvalue()


def test_a_fat_binary() -> None:
    items = list(ws_cubin.find(TWO))
    assert [(f.kind, f.arch, f.size, f.compression) for f in items] == [
        ("elf", "sm_90a", len(CUBIN) + -len(CUBIN) % 8, "none"),
        ("ptx", "sm_90", len(PTX) + 1, "none"),
    ]
    assert items[0].read() == CUBIN
    assert items[0].cubin().write() == CUBIN
    assert items[1].read() == PTX


def test_cubins_and_ptx_stand_for_themselves() -> None:
    assert found(CUBIN) == [("elf", "sm_90a", None, 0)]
    assert found(PTX) == [("ptx", None, None, 0)]
    assert found(b"") == found(b"nothing of the kind") == []


@pytest.mark.parametrize("section", [".nv_fatbin", "__nv_relfatbin", ".nvFatBinSegment", ".rodata", ".data.of.any.name"])
def test_sections_of_a_host_file(section: str) -> None:
    host = host_elf({".text": b"\x90" * 100, section: b"\1" * 24 + TWO + bytes(8) + TWO})
    places = [f.offset for f in ws_cubin.find(host)]
    assert [(f.kind, f.section) for f in ws_cubin.find(host)] == [("elf", section), ("ptx", section)] * 2
    assert all(host[f.offset + 64 :].startswith(CUBIN) for f in ws_cubin.find(host) if f.kind == "elf")
    assert places == sorted(places)


def test_host_code_that_compares_with_the_magic_is_not_looked_at() -> None:
    assert found(host_elf({".text": TWO}, executable=(".text",))) == []


def test_a_magic_that_begins_no_container_is_passed_over() -> None:
    false = TWO[:4] + b"\1\0\x10\0" + b"\xff" * 8
    assert found(b"some bytes" + false + TWO) == [
        ("elf", "sm_90a", None, 42),
        ("ptx", "sm_90", None, 42 + 64 + len(CUBIN) + len(CUBIN) % 8),
    ]


def test_a_file_of_another_kind_is_scanned() -> None:
    """A container may stand across the edge of a window of the scan, and anywhere in a Windows library."""
    for lead in (1 << 20, (1 << 20) - 3, (1 << 20) - 6, 3 * (1 << 20) - 1):
        assert [f.offset for f in ws_cubin.find(b"MZ" + bytes(lead - 2) + TWO)] == [
            lead + 16,
            lead + 16 + 64 + len(CUBIN) + -len(CUBIN) % 8,
        ]


def test_a_stripped_library_is_scanned() -> None:
    host = bytearray(host_elf({".nv_fatbin": TWO}))
    host[40:48] = bytes(8)
    host[60:62] = bytes(2)
    assert [f[:3] for f in found(bytes(host))] == [("elf", "sm_90a", None), ("ptx", "sm_90", None)]


def test_archives_and_wheels(tmp_path) -> None:
    host = host_elf({".nv_fatbin": TWO})
    library = ar({"short.o": host, "a_rather_long_member_name.o": host, "text.txt": b"words"})
    data = wheel(pkg__lib_dot_so=host, pkg__lib_dot_a=library, pkg__notes_dot_txt=TWO, inner_dot_whl=wheel(k_dot_cubin=CUBIN))
    path = tmp_path / "w.whl"
    path.write_bytes(data)
    items = list(ws_cubin.find(path))
    assert [f.path[len(str(path)) :] for f in items] == [
        *["!pkg/lib.so"] * 2, *["!pkg/lib.a!short.o"] * 2, *["!pkg/lib.a!a_rather_long_member_name.o"] * 2,
        "!inner.whl!k.cubin",
    ]  # fmt: skip
    assert all(f.read() == CUBIN for f in items if f.kind == "elf")  # when the archive is closed, too


def test_a_folder(tmp_path) -> None:
    for name in ("b.so.1", "deep/a.cubin", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(CUBIN)
    assert [f.path for f in ws_cubin.find(tmp_path)] == [str(tmp_path / name) for name in ("b.so.1", "deep/a.cubin")]


@pytest.mark.parametrize("name", ["lz4", "zstd"])
def test_compressed_by_fatbinary(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    items = list(ws_cubin.find(DATA / f"{name}.fatbin"))
    assert [(f.kind, f.arch, f.compression) for f in items] == [("elf", "sm_80", name), ("ptx", "sm_80", name)]
    if name == "zstd" and not compression.has_zstd():
        monkeypatch.setattr(compression, "_zstd", lambda: None)
        return
    assert items[0].read() == cubins()["ptxas-13.5-sm_80"]
    assert b".entry branches" in items[1].read()


def test_without_a_package_for_zstd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_zstd", lambda: None)
    item = next(iter(ws_cubin.find(DATA / "zstd.fatbin")))
    with pytest.raises(CapabilityError) as caught:
        item.read()
    assert str(caught.value) == (
        f"{DATA / 'zstd.fatbin'}: the entry is compressed with zstd, which Python has from 3.14 on; "
        "install the extra: pip install 'warpsmith[zstd]' (or the package backports.zstd or zstandard)"
    )


class _Fake:
    """Stands in for a zstd package: "compressed" bytes are the bytes."""

    class ZstdError(Exception):
        """The package's own error."""


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (lambda data, limit: bytes(limit), "zstd: the entry holds 11 bytes or more, 10 were announced (byte 0x10)"),
        (lambda data, limit: b"", "zstd: the entry holds 0 bytes or more, 10 were announced (byte 0x10)"),
    ],
)
def test_zstd_is_bounded(reader, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is asked for than was announced, and one byte to see that it is all."""
    monkeypatch.setattr(compression, "_zstd", lambda: (reader, _Fake.ZstdError))
    item = next(iter(ws_cubin.find(container(entry(b"12345678", flags=0x8011, size=10)))))
    with pytest.raises(CubinError) as caught:
        item.read()
    assert str(caught.value) == f"bytes: {message}"


def test_a_broken_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(data: bytes, limit: int) -> bytes:
        raise _Fake.ZstdError("bad frame")

    monkeypatch.setattr(compression, "_zstd", lambda: (fails, _Fake.ZstdError))
    item = next(iter(ws_cubin.find(container(entry(b"12345678", flags=0x8011, size=10)))))
    with pytest.raises(CubinError) as caught:
        item.read()
    assert str(caught.value) == "bytes: zstd: bad frame (byte 0x10)"


def refusal(data: bytes) -> str:
    with pytest.raises(CubinError) as caught:
        [item.read() for item in ws_cubin.find(data)]
    return str(caught.value)


def test_damaged_containers() -> None:
    cut = bytearray(TWO)
    cut[16 + 8 : 16 + 16] = (1 << 40).to_bytes(8, "little")
    assert refusal(bytes(cut)) == (
        f"bytes: an entry of 64 + {1 << 40} bytes ends behind its container's end at {len(TWO):#x} (byte 0x10)"
    )
    short = container(bytes(40))
    assert refusal(short) == "bytes: an entry's header of 64 bytes ends behind its container's end at 0x38 (byte 0x10)"
    low = bytearray(TWO)
    low[16 + 4 : 16 + 8] = (8).to_bytes(4, "little")
    assert refusal(host_elf({".nv_fatbin": bytes(low)})).startswith("bytes: an entry of 8 + ")
    more = container(entry(b"1234", flags=LZ4, size=4))
    more = more[:32] + (99).to_bytes(4, "little") + more[36:]
    assert refusal(more) == "bytes: an entry says 99 compressed bytes and has 8 (byte 0x10)"


def test_sizes_are_limited() -> None:
    item = next(iter(ws_cubin.find(container(entry(b"1234", flags=LZ4, size=1 << 40)))))
    with pytest.raises(CubinError) as caught:
        item.read()
    assert str(caught.value) == (
        f"bytes: the entry has {1 << 40:,} bytes when decompressed, over the limit of {1 << 30:,}; pass a larger limit= "
        "(byte 0x10)"
    )


def test_a_method_that_is_not_known() -> None:
    item = next(iter(ws_cubin.find(container(entry(b"1234", flags=0x1000, size=9)))))
    with pytest.raises(CapabilityError) as caught:
        item.read()
    assert str(caught.value) == "bytes: compression by the method of flag 0x1000 is not modelled; known are lz4 and zstd"


def test_damaged_archives() -> None:
    library = ar({"a.o": host_elf({".nv_fatbin": TWO})})
    assert refusal(library[:-20]).startswith("bytes: a member of ")
    assert refusal(b"!<arch>\n" + b"x" * 60) == "bytes: a member's header in the archive is damaged (byte 0x8)"
    assert refusal(b"!<thin>\n") == "bytes: a thin archive holds no members; name the object files it refers to (byte 0x0)"
    assert (
        refusal(wheel(a_dot_so=TWO)[:-30])
        == "bytes: the zip archive is damaged or of a kind that is not read: File is not a zip file"
    )
    deep = CUBIN
    for _ in range(5):
        deep = wheel(x_dot_whl=deep)
    assert refusal(deep) == "bytes!x.whl!x.whl!x.whl: archives are nested more than 3 deep"


def test_a_zip_bomb_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive, archive.open("big.so", "w") as member:
        for _ in range(300):
            member.write(bytes(1 << 20))
    packed = zipfile.ZipFile(io.BytesIO(out.getvalue())).getinfo("big.so").compress_size
    assert refusal(out.getvalue()) == f"bytes: member 'big.so' claims {300 << 20:,} bytes from {packed:,}; refused"


def bsd(name: bytes, data: bytes, length: int | None = None) -> bytes:
    body = name + data
    header = f"{f'#1/{len(name) if length is None else length}':<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(body):<10}`\n"
    return b"!<arch>\n" + header.encode() + body


def test_the_long_names_of_bsd_stand_before_the_bytes() -> None:
    (item,) = ws_cubin.find(bsd(b"../a_rather_long_name.o\0\0\0\0\0", CUBIN))
    assert (item.path, item.offset, item.read()) == ("bytes!../a_rather_long_name.o", 0, CUBIN)


def test_names_of_members_that_are_not_there() -> None:
    assert refusal(bsd(b"x.o", b"data", 99)) == "bytes: a member of 7 bytes is said to begin with a name of 99 (byte 0x8)"
    gnu = ar({"a_rather_long_member_name.o": b"data"}).replace(b"/0  ", b"/77 ")
    assert refusal(gnu) == "bytes: a member's name is at 77 of 29 bytes of long names (byte 0x62)"


@pytest.mark.parametrize("text", [b"/**/" * 16000, b"/*" * 30000, b"//\n" * 20000, b" \n" * 30000, b"/* **/ " * 9000])
def test_comments_without_end_are_read_once(text: bytes) -> None:
    assert found(text) == found(text + b".version") == []
    assert found(b"/**/ // a*/\n/* ** */\n" * 2000 + b".version 8.0") == [("ptx", None, None, 0)]


def test_a_pipe_is_refused(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe.so")
    with pytest.raises(InputError) as caught:
        list(ws_cubin.find(tmp_path / "pipe.so"))
    assert str(caught.value) == (
        f"{tmp_path}/pipe.so: a device, pipe or socket, which cannot be mapped; write what it gives to a file first"
    )
    assert list(ws_cubin.find(tmp_path)) == []
