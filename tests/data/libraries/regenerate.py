"""Compile kernels of libraries and write how the libraries' host code launches them; no GPU is needed.

    python tests/data/libraries/regenerate.py SOURCES BUILDS [NAME…]

NAME is a name in `LIBRARIES` or `name.architecture`, e.g. `cub_sort.80`. SOURCES is a folder with the source distributions of
the versions below (PyPI: flash-attn, mamba-ssm, causal-conv1d, vllm), unpacked; CUB 3.0.1 comes with nvcc 13.0, which is
needed. Builds are kept in BUILDS and used again. Writes tests/data/ptx/libraries, with nothing but the entries that are
launched, and launches.json here.
"""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "launches"))
from capture import Capture  # noqa: E402

PTX = HERE.parent / "ptx" / "libraries"
ARCHS = ("80", "90a", "120a")


class Library(NamedTuple):
    """Kernels of one source file here, and problems: numbers of its function `build`."""

    arrays: str
    problems: dict[str, tuple[int, ...]]
    includes: tuple[str, ...] = ()
    """Folders of SOURCES."""
    source: str = ""
    """Stem of the source file, when it is not the name."""
    config: str = ""
    """Text of config.h."""
    flags: tuple[str, ...] = ()
    cut: tuple[str, str] = ("", "")
    """A file of SOURCES that becomes kernels.cuh, up to a text where it instantiates everything."""
    archs: tuple[str, ...] = ARCHS


FLASH_ATTENTION, MAMBA, CONVOLUTION = "flash_attn-2.8.3.post2/csrc", "mamba_ssm-2.3.2.post1/csrc", "causal_conv1d-1.7.0/csrc"
VLLM = "vllm-0.33.0/csrc"
FLASH = (f"{FLASH_ATTENTION}/flash_attn/src", f"{FLASH_ATTENTION}/cutlass/include")


def flash(
    element: str, head: int, traits: str, *problem: int, causal: bool, backward: bool = False, drop: bool = False
) -> Library:
    """FlashAttention-2; `problem`: batch, heads of queries, of keys, lengths of queries and keys."""
    config = f"""#include <cutlass/numeric_types.h>
using Element = cutlass::{element};
constexpr int HEAD = {head};
constexpr bool CAUSAL = {int(causal)}, DROPOUT = {int(drop)};
#define TRAITS {traits}
{"#define BACKWARD" if backward else ""}
"""
    arrays = "q k v o sums state" + (" do dq dk dv dq_sums do_o" if backward else "")
    return Library(arrays, {"": problem}, FLASH, "flash_attention", config, ("--use_fast_math",))


FORWARD, BACKWARD = "Flash_fwd_kernel_traits<HEAD, {}, Element>", "Flash_bwd_kernel_traits<HEAD, {}, Element>"
CUB = "x y counts work more values"
LIBRARIES: dict[str, Library] = {
    "cub_sort": Library("keys sorted values placed work", {"": (9000,)}),
    "cub_selection": Library(
        CUB, {"_select": (0, 6000, 0), "_partition": (1, 6000, 0), "_histogram": (2, 2000, 0), "_runs": (3, 6000, 0)},
        source="cub_devices", flags=("-DPART=0",),
    ),
    "cub_by_key": Library(
        CUB, {"_segments": (4, 5000, 12), "_merge": (5, 3000, 0), "_reduce": (6, 6000, 0), "_scan": (7, 4000, 0)},
        source="cub_devices", flags=("-DPART=1",),
    ),
    "cub_more_sorts": Library(
        CUB, {"_doubles": (8, 3000, 0), "_segments": (9, 3000, 30)}, source="cub_devices", flags=("-DPART=2",)
    ),
    "flash_attention_2": flash("half_t", 64, FORWARD.format("128, 128, 4, false, false"), 1, 4, 2, 200, 300, causal=True),
    "flash_attention_2_dropout": flash(
        "bfloat16_t", 128, FORWARD.format("128, 32, 4, false, false"), 1, 1, 1, 100, 150, causal=False, drop=True
    ),
    "flash_attention_2_backward": flash(
        "half_t", 64, BACKWARD.format("64, 128, 8, 2, 4, 4, true, false"), 1, 2, 2, 200, 150, causal=False, backward=True
    ),
    "causal_conv1d": Library(
        "x weights biases out sequences", {"": (0, 2, 3, 1404), "_channels_last": (1, 1, 96, 150)},
        (CONVOLUTION,), cut=(f"{CONVOLUTION}/causal_conv1d_fwd.cu", "\ntemplate void "),
    ),
    "selective_scan": Library(
        "a b c d u delta biases out states z gated", {"": (2, 3, 1100, 4, 1)}, (f"{MAMBA}/selective_scan",),
        flags=("-DWEIGHT=float",),
    ),
    "marlin_int4": Library(
        "a weights c sums scales zeros locks", {"": (16, 256, 512, 4), "_three": (13, 256, 512, 3)},
        (VLLM, f"{VLLM}/quantization/marlin"), "marlin", "#define WEIGHT vllm::kU4B8\n#define GROUP 128\n",
        archs=("80", "90a"),
    ),
}  # fmt: skip


def compiled(sources: Path, folder: Path, name: str, arch: str) -> str:
    """Compile into lib.so of a folder; return the PTX, with files named from SOURCES or from here on."""
    library = LIBRARIES[name]
    source = HERE / f"{library.source or name}.cu"
    folder.mkdir(parents=True, exist_ok=True)
    includes = [*(sources / i for i in library.includes), HERE / "stand_ins", folder]
    command = [
        "nvcc", "-std=c++17", "-O2", "-shared", "-Xcompiler", "-fPIC", "--expt-relaxed-constexpr", "--expt-extended-lambda",
        "-cudart", "shared", "-DNDEBUG", "-w", "-lineinfo", "--keep", "--keep-dir", str(folder),
        *(f"-I{i}" for i in includes), *library.flags, f"-gencode=arch=compute_{arch},code=compute_{arch}",
        str(source), "-o", str(folder / "lib.so"),
    ]  # fmt: skip
    made, made_of = folder / "made_of.txt", "\n".join([*command, library.config, source.read_text()])
    if not made.exists() or made.read_text() != made_of:
        (folder / "config.h").write_text(library.config)
        if library.cut[0]:
            whole = (sources / library.cut[0]).read_text()
            (folder / "kernels.cuh").write_text(whole[: whole.index(library.cut[1])])
        subprocess.run(command, check=True, cwd=folder)
        made.write_text(made_of)
    text = (folder / f"{source.stem}.ptx").read_text()
    for start in (f"{sources.resolve()}/", f"{HERE}/", f"{folder.resolve()}/"):
        text = text.replace(f'"{start}', '"')
    return re.sub(r'"/[^"]*?/include/', '"', text)


def only(text: str, launched: set[str]) -> str:
    """The text without entries that are not launched."""

    def kept(entry: re.Match[str]) -> str:
        return entry[0] if entry[1] in launched else ""

    return re.sub(r"^\t?(?:\.weak |\.visible )?\.entry (\w+)\(.*?^\}\n", kept, text, flags=re.M | re.S)


def main(arguments: list[str]) -> None:
    """Write the files of some libraries, or of all."""
    sources, builds, names = Path(arguments[0]).resolve(), Path(arguments[1]), arguments[2:] or list(LIBRARIES)
    assert "release 13.0," in subprocess.run(["nvcc", "--version"], check=True, capture_output=True, text=True).stdout
    names = [
        f"{n}.{a}" for given in names for n, _, one in (given.partition("."),) for a in ((one,) if one else LIBRARIES[n].archs)
    ]
    if len(names) > 1:  # a process takes down one library: the next would call the first one's stand-in
        for name in names:
            subprocess.run([sys.executable, __file__, *arguments[:2], name], check=True)
        return
    name, _, arch = names[0].partition(".")
    library, folder = LIBRARIES[name], (builds / names[0]).resolve()
    text = compiled(sources, folder, name, arch)
    capture = Capture(folder, text, library.arrays.split(), capability=int(arch.rstrip("a")))
    launches_file = HERE / "launches.json"
    launches = json.loads(launches_file.read_text()) if launches_file.exists() else {}
    for problem, numbers in library.problems.items():
        launches[f"{name}{problem}.sm_{arch}"] = capture.build(*numbers)
    mine = [launches[f"{name}{problem}.sm_{arch}"] for problem in library.problems]
    text = only(text, {how["kernel"] for launched in mine for how in launched if "kernel" in how})
    text_of = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(launches.items()))
    launches_file.write_text(f"{{\n{text_of}\n}}\n")
    PTX.mkdir(exist_ok=True)
    packed = lzma.compress(text.encode(), preset=9)
    (PTX / f"{name}.sm_{arch}.ptx.xz").write_bytes(packed)
    print(names[0], len(text), len(packed), [len(launched) for launched in mine])


if __name__ == "__main__":
    main(sys.argv[1:])
