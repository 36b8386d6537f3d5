"""`warpsmith find` and `warpsmith extract`."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from command_line import Run
from containers import container, entry, host_elf
from cubin_corpus import DATA, cubins

SM80, SM90 = cubins()["ptxas-13.5-sm_80"], cubins()["ptxas-13.5-sm_90a"]
PTX = b".version 8.8\n.target sm_90\n"
HOST = host_elf({".nv_fatbin": container(entry(SM80, arch=80), entry(SM90, flags=0x100011), entry(PTX, kind=1))})


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "lib.so"
    path.write_bytes(HOST)
    return path


def test_a_table(run: Run, library: Path) -> None:
    got = run("find", library)
    first = HOST.index(SM80) - 64
    second, third = HOST.index(SM90) - 64, HOST.index(PTX) - 64
    assert (got.status, got.err) == (0, "")
    assert got.out.splitlines() == [
        str(library),
        f"  {first:#12x}  sm_80     elf   {len(SM80):>12,}",
        f"  {second:#12x}  sm_90a    elf   {len(SM90) + 4:>12,}",
        f"  {third:#12x}  sm_90     ptx   {len(PTX) + 5:>12,}",
        "total: 1 elf sm_80, 1 ptx sm_90, 1 elf sm_90a",
    ]


def test_kernels_and_architectures(run: Run, library: Path) -> None:
    got = run("find", library, "--arch", "sm_90a", "--kernels")
    assert got.out.splitlines()[2:] == ["      shares", "      branches", "total: 1 elf sm_90a"]


def test_json(run: Run) -> None:
    got = run("find", DATA / "lz4.fatbin", "--json", "--kernels")
    first, second = map(json.loads, got.out.splitlines())
    assert first == {
        "file": str(DATA / "lz4.fatbin"), "offset": 16, "section": None, "arch": "sm_80", "kind": "elf", "size": len(SM80),
        "stored": first["stored"], "compression": "lz4", "kernels": ["shares", "branches"],
    }  # fmt: skip
    assert 0 < first["stored"] < len(SM80)
    assert "kernels" not in second


def test_nothing_found(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert run("find", tmp_path / "empty").out == "no GPU code found\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("find", "missing.so"), "warpsmith: error: missing.so: No such file or directory\n"),
        (("extract", "missing.so"), "warpsmith: error: missing.so: No such file or directory\n"),
        (
            ("extract", "lib.so", "--arch", "sm_75", "--kernel", "gemm"),
            "warpsmith: error: nothing to extract from lib.so: no entry with architecture sm_75 and a kernel named gemm; "
            "`warpsmith find` lists what there is\n",
        ),
        (
            ("extract", "cut.so"),
            "warpsmith: error: cut.so: a fat binary of 99999 bytes ends behind the data's end at 0x10 (byte 0x0)\n",
        ),
    ],
)
def test_bad_input(run: Run, library: Path, arguments: tuple[str, ...], message: str) -> None:
    (library.parent / "cut.so").write_bytes(container(b"")[:8] + (99999).to_bytes(8, "little"))
    got = run(*arguments)
    if arguments[1] == "cut.so":
        message = (
            "warpsmith: error: nothing to extract from cut.so: no GPU code found\n"  # a container that is not whole is none
        )
    assert (got.status, got.out, got.err) == (2, "", message)


def test_an_unknown_architecture(run: Run, library: Path) -> None:
    got = run("find", library, "--arch", "sm_91")
    assert got.status == 2
    assert got.err.startswith("warpsmith: error: unknown architecture 'sm_91'; known: sm_20, ")


def test_what_cannot_be_read_is_passed_over(run: Run, library: Path) -> None:
    folder = library.parent / "many"
    folder.mkdir()
    (folder / "a.cubin").write_bytes(SM80[:4000])
    (folder / "b.cubin").write_bytes(SM80)
    (folder / "c.fatbin").write_bytes(container(entry(b"\x50ab", flags=0x2011, size=9), entry(SM90, flags=0x100011)))
    cut = "warpsmith: error: many/a.cubin: 29 section headers at 0x3f00 end behind the file's end at 0xfa0 (byte 0x28)\n"
    packed = "warpsmith: error: many/c.fatbin: LZ4: 5 literal bytes do not fit (byte 0x10)\n"
    missing = "warpsmith: error: none.so: No such file or directory\n"
    got = run("find", "none.so", "many", "many/b.cubin")
    assert (got.status, got.err) == (2, missing + cut)
    assert got.out.splitlines()[-1] == "total: 2 elf sm_80, 1 elf sm_90, 1 elf sm_90a"
    got = run("find", "many", "--kernels", "--arch", "sm_90")
    assert (got.status, got.err) == (2, cut + packed)
    got = run("extract", "many", "-o", "out")
    assert (got.status, got.err) == (2, cut + packed)
    assert sorted(p.name for p in Path("out").iterdir()) == ["b.cubin.0.sm_80.cubin", "c.fatbin.58.sm_90a.cubin"]


@pytest.mark.parametrize("verb", ["find", "extract", "sass"])
def test_an_empty_path_is_not_this_folder(run: Run, library: Path, verb: str) -> None:
    got = run(verb, "")
    assert (got.status, got.out, got.err) == (2, "", "warpsmith: error: the path is empty; name a file or a folder\n")


@pytest.mark.parametrize(
    ("name", "meant"), [("SM_90A", "sm_90a"), ("90a", "sm_90a"), ("compute_90", "sm_90"), ("SM80", "sm_80")]
)
def test_an_architecture_as_others_write_it(run: Run, library: Path, name: str, meant: str) -> None:
    got = run("find", library, "--arch", name)
    assert got.err.startswith(f"warpsmith: error: unknown architecture {name!r}; did you mean {meant!r}?; known: sm_20, ")


def test_extract(run: Run, library: Path) -> None:
    got = run("extract", library, "-o", "out")
    files = {p.name: p.read_bytes() for p in (library.parent / "out").iterdir()}
    places = [HOST.index(data) - 64 for data in (SM80, SM90, PTX)]
    names = [f"lib.so.{at:x}.{rest}" for at, rest in zip(places, ("sm_80.cubin", "sm_90a.cubin", "sm_90.ptx"), strict=True)]
    assert files == dict(zip(names, (SM80, SM90, PTX), strict=True))
    assert got.out.splitlines() == [f"out/{n}: {len(files[n]):,} bytes" for n in names]


def test_extract_some(run: Run, library: Path) -> None:
    got = run("extract", library, "--kernel", "branch", "--arch", "sm_90a", "--kind", "elf", "-o", "out", "--json")
    (row,) = json.loads(got.out)
    assert (row["arch"], row["kind"], row["bytes"], row["from"]) == ("sm_90a", "elf", len(SM90), str(library))
    assert Path(row["output"]).read_bytes() == SM90
    assert [p.name for p in Path("out").iterdir()] == [Path(row["output"]).name]


def test_a_damaged_entry_leaves_no_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.fatbin").write_bytes(container(entry(b"\x50ab", flags=0x2011, size=9)))
    got = run("extract", tmp_path / "bad.fatbin", "-o", "out")
    assert (got.status, got.out) == (2, "")
    assert got.err == f"warpsmith: error: {tmp_path / 'bad.fatbin'}: LZ4: 5 literal bytes do not fit (byte 0x10)\n"
    assert not Path("out").exists()


def test_members_called_alike(run: Run, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "w.whl", "w") as archive:
        archive.writestr("a/k.cubin", SM80)
        archive.writestr("b/k.cubin", SM90)
        archive.writestr("c/k.cubin", SM80)
    assert run("extract", tmp_path / "w.whl", "-o", "out").status == 0
    got = {p.name: p.read_bytes() for p in Path("out").iterdir()}
    assert got == {"k.cubin.0.sm_80.cubin": SM80, "k.cubin.0.sm_90a.cubin": SM90, "k.cubin.0.sm_80.2.cubin": SM80}


def test_names_that_a_terminal_or_a_file_system_may_not_take(run: Run, tmp_path: Path) -> None:
    names = ["a\nb\x1b[31m.cubin", "x\\y:z.cubin", "é" * 300 + ".cubin", "../../up.cubin"]
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in names:
            archive.writestr(name, SM90)
    got = run("find", tmp_path / "all.zip")
    assert f"{tmp_path}/all.zip!a\\nb\\x1b[31m.cubin" in got.out.splitlines()
    assert "\x1b" not in got.out
    got = run("extract", tmp_path / "all.zip", "-o", tmp_path / "out")
    assert (got.status, got.err) == (0, "")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        f"{stem}.cubin.0.sm_90a.cubin" for stem in ("a_b_[31m", "y_z", "é" * 97, "up")
    }
