"""Compile kernels of CUTLASS's examples and write how their host code launches them; no GPU is needed.

    python tests/data/cutlass/examples/regenerate.py CUTLASS BUILDS [NAME…]

CUTLASS is the folder with `include`, `tools` and `examples` of CUTLASS 4.2 (PyPI `nvidia-cutlass` holds them); builds are kept
in BUILDS and used again. Needs nvcc 13. Writes tests/data/ptx/cutlass and launches.json here.
"""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "launches"))
from capture import Capture  # noqa: E402

PTX = HERE.parents[1] / "ptx" / "cutlass"
HALF, BF16, E4M3, E5M2 = "cutlass::half_t", "cutlass::bfloat16_t", "cutlass::float_e4m3_t", "cutlass::float_e5m2_t"
PINGPONG = "cutlass::gemm::KernelTmaWarpSpecializedPingpong"
COOPERATIVE = "cutlass::gemm::KernelTmaWarpSpecializedCooperative"


class Example(NamedTuple):
    """A source file here, its settings (config.h), and problems: arrays and numbers of its function `build`."""

    arch: str
    source: str
    folder: str
    """Of CUTLASS's examples."""
    config: str
    arrays: str
    problems: dict[str, tuple[int, ...]]


def hopper(element: str, tile: str, fusion: str, schedule: str, *numbers: int, more: str = "") -> Example:
    """Attention for Hopper; `numbers`: batch, heads, queries, keys, head dimension, multiprocessors."""
    config = f"""using Element = {element}; using TileShape = Shape<{tile}>; using Fusion = {fusion};
using Schedule = {schedule};
#define OPTIONS
{more}"""
    return Example("90a", "hopper_fmha", "88_hopper_fmha", config, "q k v o sums", {"": numbers})


def tutorial(file: str, *problem: int) -> Example:
    """A product of CuTe's tutorials for Blackwell; `problem`: m, n, k."""
    return Example("100a", "tutorial", "cute/tutorial/blackwell", f'#include "{file}"\n', "a b c d", {"": problem})


EXAMPLES = {
    "attention_pingpong": hopper(HALF, "_128, _64, _64", "CausalFusion", PINGPONG, 1, 3, 200, 200, 64, 2),
    "attention_cooperative": hopper(BF16, "_128, _128, _128", "ResidualFusion", COOPERATIVE, 2, 1, 200, 170, 128, 4),
    "attention_fp8": hopper(
        E4M3, "_128, _256, _128", "DefaultFusion", COOPERATIVE, 1, 1, 128, 512, 128, 4, more="#define VALUES_BY_COLUMNS\n"
    ),
    "attention_gradients": Example(
        "90a", "hopper_fmha_bwd", "88_hopper_fmha",
        f"""using Element = {HALF}; using TileShape = Shape<_64, _128, _64>; using Fusion = CausalFusion;
#define OPTIONS
""",
        "q k v o sums do dq dk dv work", {"": (1, 2, 128, 128, 64, 4)},
    ),
    "attention": Example(
        "100a", "blackwell_fmha", "77_blackwell_fmha",
        f"""using Element = {HALF}; using ElementOut = {HALF}; using TileShape = Shape<_256, _128, _64>;
using Mask = CausalMask<>; using Scheduler = cutlass::fmha::kernel::PersistentTileScheduler;
""",
        "q k v o sums first_q first_k", {"": (1, 4, 2, 300, 300, 64, 300, 300, 3)},
    ),
    "generation": Example(
        "100a", "blackwell_fmha_gen", "77_blackwell_fmha",
        f"""using Element = {E5M2}; using TileShape = Shape<_128, _64, _128>;
using Scheduler = kernel::PersistentTileScheduler;
""",
        "lengths places q new_k new_v k v o", {"": (2, 4, 2, 160, 128, 2)},
    ),
    "latent": Example(
        "100a", "blackwell_mla", "77_blackwell_fmha",
        f"""using Element = {HALF}; using Scheduler = Sm100MlaPersistentTileScheduler;
#define PAGED
""",
        "q c o sums lengths pages work", {"": (1, 200, 0, 0, 1, 0, 4), "_split": (2, 300, 0, 0, 2, 0, 4)},
    ),
    "latent_paged": Example(
        "100a", "blackwell_mla", "77_blackwell_fmha",
        f"""using Element = {HALF}; using Scheduler = Sm100MlaIndividualTileScheduler;
#define PAGED , true
""",
        "q c o sums lengths pages work", {"": (2, 300, 64, 10, 1, 0, 4)},
    ),
    "attention_residual": Example(
        "100a", "blackwell_fmha", "77_blackwell_fmha",
        f"""using Element = {E4M3}; using ElementOut = {HALF}; using TileShape = Shape<_256, _128, _128>;
using Mask = ResidualMask; using Scheduler = cutlass::fmha::kernel::IndividualTileScheduler;
""",
        "q k v o sums first_q first_k", {"": (2, 1, 1, 200, 150, 128, 200, 150, 4)},
    ),
    "attention_lengths": Example(
        "100a", "blackwell_fmha", "77_blackwell_fmha",
        f"""using Element = {HALF}; using ElementOut = {HALF}; using TileShape = Shape<_256, _128, _64>;
using Mask = ResidualMask; using Scheduler = cutlass::fmha::kernel::PersistentTileScheduler;
#define LENGTHS_FROM_MEMORY
""",
        "q k v o sums first_q first_k", {"": (2, 2, 1, 330, 240, 64, 260, 170, 3)},
    ),
    "gradients": Example(
        "100a", "blackwell_fmha_bwd", "77_blackwell_fmha",
        f"""using Element = {HALF}; using TileShape = Shape<_128, _128, _64, _64>; using Mask = CausalForBackwardMask<>;
""",
        "q k v o sums do dq dk dv work", {"": (1, 2, 1, 200, 200, 64, 4)},
    ),
    "hopper_tutorial": Example(
        "90a", "hopper_tutorial", "cute/tutorial/hopper", '#include "wgmma_tma_sm90.cu"\n', "a b c", {"": (256, 128, 320)}
    ),
    "tutorial_1": tutorial("01_mma_sm100.cu", 128, 256, 128),
    "tutorial_3": tutorial("03_mma_tma_multicast_sm100.cu", 512, 1024, 128),
    "tutorial_4": tutorial("04_mma_tma_2sm_sm100.cu", 512, 1024, 128),
    "tutorial_5": tutorial("05_mma_tma_epi_sm100.cu", 512, 1024, 128),
}  # fmt: skip


def compiled(cutlass: Path, folder: Path, example: Example) -> str:
    """Compile into lib.so of a folder; return the PTX, with files named from CUTLASS or from here on."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "lib.so").exists() or (folder / "config.h").read_text() != example.config:
        (folder / "config.h").write_text(example.config)
        includes = cutlass / "include", cutlass / "tools/util/include", cutlass / "examples" / example.folder, folder
        subprocess.run(
            [
                "nvcc", "-std=c++17", "-O2", "-shared", "-Xcompiler", "-fPIC", "--expt-relaxed-constexpr", "--use_fast_math",
                "-cudart", "shared", "-DCUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL=1", "-DNDEBUG", "-w", "-lineinfo", "--keep",
                "--keep-dir", str(folder), *(f"-I{i}" for i in includes),
                f"-gencode=arch=compute_{example.arch},code=compute_{example.arch}",
                str(HERE / f"{example.source}.cu"), "-o", str(folder / "lib.so"),
            ],
            check=True, cwd=folder,
        )  # fmt: skip
    text = (folder / f"{example.source}.ptx").read_text()
    for start in (f"{cutlass.resolve()}/", f"{HERE}/", f"{folder.resolve()}/"):
        text = text.replace(f'"{start}', '"')
    return text


def main(arguments: list[str]) -> None:
    """Write the files of some examples, or of all."""
    cutlass, builds, names = Path(arguments[0]), Path(arguments[1]), arguments[2:] or list(EXAMPLES)
    launches_file = HERE / "launches.json"
    if len(names) > 1:  # a process takes down one library: the next would call the first one's stand-in
        for name in names:
            subprocess.run([sys.executable, __file__, *arguments[:2], name], check=True)
        return
    for name in names:
        example = EXAMPLES[name]
        text = compiled(cutlass, builds / name, example)
        launches = json.loads(launches_file.read_text()) if launches_file.exists() else {}
        capture = Capture(builds / name, text, example.arrays.split())
        for problem, numbers in example.problems.items():
            launches[name + problem] = capture.build(*numbers)
        text_of = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(launches.items()))
        launches_file.write_text(f"{{\n{text_of}\n}}\n")
        (PTX / f"{name}.sm_{example.arch}.ptx.xz").write_bytes(lzma.compress(text.encode(), preset=9))
        print(name, len(text), [len(launches[name + p]) for p in example.problems])


if __name__ == "__main__":
    main(sys.argv[1:])
