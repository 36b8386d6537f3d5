"""Compile the GEMMs of CUTLASS that the tests run, and write how each is launched; no GPU is needed.

    python tests/data/cutlass/regenerate.py CUTLASS/include CUTLASS/tools/util/include [NAME…]

Needs nvcc 13, gcc and the C++ sources of CUTLASS 4.2 (PyPI `nvidia-cutlass` holds them). Writes tests/data/ptx/cutlass,
launches.json (parameters with the places of pointers and tensor maps) and layouts.npz (where CUTLASS puts scale factors,
metadata and the elements of a sparse A, as differences along rows and columns). Tensor maps are taken down by a stand-in of
the driver.
"""

from __future__ import annotations

import ctypes
import json
import lzma
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from warpsmith.base.tensormap import ELEMENTS, INTERLEAVES, L2_PROMOTIONS, SWIZZLES, TensorMapFields
from warpsmith.base.tensormap_bits import encode

HERE = Path(__file__).resolve().parent
PTX = HERE.parent / "ptx" / "cutlass"
STAND_IN = """
int (*hook)(void*, int, int, void*, const unsigned long long*, const unsigned long long*, const unsigned*, const unsigned*,
            int, int, int, int);
int cuTensorMapEncodeTiled(void* m, int t, int r, void* a, const unsigned long long* d, const unsigned long long* s,
                           const unsigned* b, const unsigned* e, int i, int w, int l, int o) {
  return hook(m, t, r, a, d, s, b, e, i, w, l, o);
}
#define MISSING(name) int name(void) { return 999; }
MISSING(cuTensorMapEncodeIm2col) MISSING(cuGetErrorString) MISSING(cuGetErrorName) MISSING(cuLaunchKernelEx)
MISSING(cuOccupancyMaxActiveClusters)
"""
ARRAYS = "abcdefg"
"""Names of the arrays in the order of `build`: A, B, C, D, metadata, scale factors of A and of B."""
START = 0x7A00_0000_0000

AUTO = "cutlass::gemm::collective::KernelScheduleAuto", "cutlass::epilogue::collective::EpilogueScheduleAuto"
STRIDES = (
    "cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, {m, k, 1})",
    "cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, {n, k, 1})",
)
DENSE = f"(ElementA*)a, {STRIDES[0]}, (ElementB*)b, {STRIDES[1]}"
SPARSE = (
    f"(ElementA*)a, Mainloop::SparseConfig::fill_layoutA(problem), (ElementB*)b, {STRIDES[1]}, "
    "(typename Mainloop::ElementE*)e, Mainloop::SparseConfig::fill_layoutE(problem)"
)
SCALED = (
    f"(typename Mainloop::ArrayElementA*)a, {STRIDES[0]}, (typename Mainloop::ArrayElementB*)b, {STRIDES[1]}, "
    "(typename Mainloop::ElementSF*)fa, Mainloop::Sm1xxBlkScaledConfig::tile_atom_to_shape_SFA(problem), "
    "(typename Mainloop::ElementSF*)fb, Mainloop::Sm1xxBlkScaledConfig::tile_atom_to_shape_SFB(problem)"
)
SPARSE_SCALED = (
    "(typename Mainloop::ArrayElementA*)a, Mainloop::SparseConfig::fill_layoutA(problem), "
    f"(typename Mainloop::ArrayElementB*)b, {STRIDES[1]}, "
    "(typename Mainloop::ElementE*)e, Mainloop::SparseConfig::fill_layoutE(problem), "
    "(typename Mainloop::ElementSF*)fa, Mainloop::Sm1xxBlkScaledConfig::tile_atom_to_shape_SFA(problem), "
    "(typename Mainloop::ElementSF*)fb, Mainloop::Sm1xxBlkScaledConfig::tile_atom_to_shape_SFB(problem)"
)
PLACES = """extern "C" void {name}(unsigned* out, int m, int n, int k) {{
  auto layout = {layout}(make_shape(m, n, k, 1));
  for (int r = 0; r < {rows}; r++) for (int j = 0; j < k; j++) out[r * k + j] = layout(r, j, 0);
}}
"""
SPARSE_PLACES = {"a": ("Mainloop::SparseConfig::fill_layoutA", "m"), "e": ("Mainloop::SparseConfig::fill_layoutE", "m")}
SCALED_PLACES = {
    "f": ("Mainloop::Sm1xxBlkScaledConfig::tile_atom_to_shape_SFA", "m"),
    "g": ("Mainloop::Sm1xxBlkScaledConfig::tile_atom_to_shape_SFB", "n"),
}
LAYOUTS = {DENSE: {}, SPARSE: SPARSE_PLACES, SCALED: SCALED_PLACES, SPARSE_SCALED: {**SPARSE_PLACES, **SCALED_PLACES}}
HALF, E4M3, E5M2, BF16 = "cutlass::half_t", "cutlass::float_e4m3_t", "cutlass::float_e5m2_t", "cutlass::bfloat16_t"
MXFP8, MXFP4 = "cutlass::mx_float8_t<cutlass::float_e4m3_t>", "cutlass::mx_float4_t<cutlass::float_e2m1_t>"
NVFP4, ULTRA = "cutlass::nv_float4_t<cutlass::float_e2m1_t>", "cute::tuple<cutlass::float_e2m1_t, cutlass::float_ue4m3_t>"
COOPERATIVE = "cutlass::gemm::KernelTmaWarpSpecializedCooperative", "cutlass::epilogue::TmaWarpSpecializedCooperative"
PINGPONG = "cutlass::gemm::KernelTmaWarpSpecializedPingpongFP8FastAccum", "cutlass::epilogue::TmaWarpSpecialized"
SPARSE_PAIR = "cutlass::gemm::KernelSparseTmaWarpSpecialized2SmSm100", "cutlass::epilogue::TmaWarpSpecialized2Sm"
SCALED_SPARSE = "BlockScaledSparseTensorOp"
SPARSE_NVFP4 = "cutlass::gemm::KernelSparseTmaWarpSpecialized2SmNvf4Sm100", "cutlass::epilogue::TmaWarpSpecialized2SmNvf4"
SPARSE_MXF4 = "cutlass::gemm::KernelSparseTmaWarpSpecialized1SmMxf4Sm100", "cutlass::epilogue::TmaWarpSpecialized1SmMxf4"
SPARSE_MXFP8 = (
    "cutlass::gemm::KernelSparseTmaWarpSpecialized1SmMxf8f6f4Sm100", "cutlass::epilogue::TmaWarpSpecialized1SmMxf8f6f4",
)  # fmt: skip
SPARSE_GEFORCE = (
    "cutlass::gemm::KernelSparseTmaWarpSpecializedNvf4Sm120", "cutlass::epilogue::SparseTmaWarpSpecializedCooperativeSm120",
)  # fmt: skip
ULTRA_SCHEDULE = (
    "cutlass::gemm::KernelTmaWarpSpecialized1SmBlockScaledMxNvf4UltraVs16Sm103", "cutlass::epilogue::NoSmemWarpSpecialized1Sm",
)  # fmt: skip

# architecture, operator class, types of A, B, and C and D, C and D by columns, tile, cluster, schedules, operands, problem
GEMMS = {
    "cooperative": ("90a", "TensorOp", (HALF, HALF, HALF), 0, (128, 128, 64), (2, 1), COOPERATIVE, DENSE, (256, 128, 192)),
    "pingpong": ("90a", "TensorOp", (E4M3, E5M2, BF16), 0, (64, 128, 128), (1, 2), PINGPONG, DENSE, (128, 256, 256)),
    "sparse": ("90a", "SparseTensorOp", (HALF, HALF, "float"), 1, (128, 128, 128), (1, 2), AUTO, SPARSE, (128, 256, 256)),
    "pair": ("100a", "TensorOp", (HALF, HALF, "float"), 1, (256, 128, 64), (2, 2), AUTO, DENSE, (512, 256, 192)),
    "sparse_pair": (
        "100a", "SparseTensorOp", (HALF, HALF, "float"), 1, (256, 128, 64), (2, 1), SPARSE_PAIR, SPARSE, (256, 128, 256),
    ),
    "nvfp4": ("100a", "BlockScaledTensorOp", (NVFP4, NVFP4, BF16), 0, (256, 128, 256), (2, 1), AUTO, SCALED, (256, 128, 512)),
    "ultra": (
        "103a", "BlockScaledTensorOp", (ULTRA, ULTRA, BF16), 0, (128, 128, 768), (1, 1), ULTRA_SCHEDULE, SCALED,
        (128, 128, 1536),
    ),
    "geforce": ("120a", "BlockScaledTensorOp", (NVFP4, NVFP4, BF16), 0, (128, 128, 128), (1, 1), AUTO, SCALED, (128, 128, 256)),
    "sparse_nvfp4": (
        "100a", SCALED_SPARSE, (NVFP4, NVFP4, BF16), 0, (256, 128, 256), (2, 1), SPARSE_NVFP4, SPARSE_SCALED, (256, 128, 512),
    ),
    "sparse_mxf4": (
        "100a", SCALED_SPARSE, (MXFP4, MXFP4, BF16), 0, (128, 128, 256), (1, 1), SPARSE_MXF4, SPARSE_SCALED, (128, 128, 512),
    ),
    "sparse_mxfp8": (
        "100a", SCALED_SPARSE, (MXFP8, MXFP8, BF16), 0, (128, 128, 256), (1, 1), SPARSE_MXFP8, SPARSE_SCALED, (128, 128, 512),
    ),
    "sparse_geforce": (
        "120a", SCALED_SPARSE, (NVFP4, NVFP4, BF16), 0, (128, 128, 256), (1, 1), SPARSE_GEFORCE, SPARSE_SCALED, (128, 128, 512),
    ),
}  # fmt: skip
MULTIPROCESSORS = 4
BITS = {HALF: 16, E4M3: 8, E5M2: 8, BF16: 16, "float": 32, NVFP4: 4, ULTRA: 4, MXFP8: 8, MXFP4: 4}


def config(name: str) -> str:
    """The text of config.h."""
    arch, op, (a, b, c), columns, tile, cluster, (kernel, epilogue), operands, _ = GEMMS[name]
    two = 2 if "Sparse" in op and arch != "90a" else 1
    layouts = " ".join(
        PLACES.format(name=f"places_{n}", layout=at, rows=r).replace("\n", " ") for n, (at, r) in LAYOUTS[operands].items()
    )  # fmt: skip
    return f"""using ElementA = {a}; using ElementB = {b}; using ElementC = {c};
using LayoutA = cutlass::layout::RowMajor; using LayoutB = cutlass::layout::ColumnMajor;
using LayoutC = cutlass::layout::{"ColumnMajor" if columns else "RowMajor"};
constexpr int AlignA = {two * 128 // BITS[a]}, AlignB = {128 // BITS[b]}, AlignC = {128 // BITS[c]};
using ArchTag = cutlass::arch::Sm{arch[:-1]}; using OpClass = cutlass::arch::OpClass{op};
using TileShape = Shape<{", ".join(f"Int<{x}>" for x in tile)}>; using ClusterShape = Shape<_{cluster[0]}, _{cluster[1]}, _1>;
using KernelSchedule = {kernel}; using EpilogueSchedule = {epilogue};
#define MAINLOOP {operands}
#define LAYOUTS {layouts}
"""


def compiled(name: str, includes: list[str], folder: Path) -> str:
    """Compile into lib.so of a folder; return the PTX, with files named from the folder of the sources on."""
    (folder / "config.h").write_text(config(name))
    arch = GEMMS[name][0]
    subprocess.run(
        [
            "nvcc", "-std=c++17", "-O2", "-shared", "-Xcompiler", "-fPIC", "--expt-relaxed-constexpr", "-cudart", "shared",
            "-DCUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL=1", "-DNDEBUG", "-w", "-lineinfo", "--keep", "--keep-dir", str(folder),
            "-I", str(folder), *(f"-I{i}" for i in includes), f"-gencode=arch=compute_{arch},code=compute_{arch}",
            str(HERE / "gemm.cu"), "-o", str(folder / "lib.so"),
        ],
        check=True, cwd=folder,
    )  # fmt: skip
    text = (folder / "gemm.ptx").read_text()
    for start, new in ((f"{Path(includes[0]).resolve().parent}/", ""), (f"{HERE}/", ""), (f"{folder}/", "")):
        text = text.replace(f'"{start}', f'"{new}')
    return text


class Launch(ctypes.Structure):
    """What `build` says of the launch."""

    _fields_ = [("grid", ctypes.c_int * 3), ("block", ctypes.c_int * 3), ("cluster", ctypes.c_int * 3),
                ("shared", ctypes.c_int), ("size", ctypes.c_int)]  # fmt: skip


def launch(name: str, folder: Path) -> tuple[dict, dict]:
    """Return the launch, its parameters in pieces, and the layouts."""
    (folder / "driver.c").write_text(STAND_IN)
    subprocess.run(["gcc", "-shared", "-fPIC", "driver.c", "-o", "driver.so"], check=True, cwd=folder)
    driver = ctypes.CDLL(str(folder / "driver.so"), mode=ctypes.RTLD_GLOBAL)
    maps: dict[bytes, dict] = {}

    def taken_down(at, element, rank, address, dims, strides, box, steps, interleave, swizzle, l2, fill):
        fields = {
            "element": list(ELEMENTS)[element], "dims": dims[:rank], "strides": strides[: rank - 1], "box": box[:rank],
            "element_strides": steps[:rank], "interleave": INTERLEAVES[interleave], "swizzle": SWIZZLES[swizzle],
            "l2": L2_PROMOTIONS[l2],
        }  # fmt: skip
        assert not fill
        data = encode(
            TensorMapFields(address=address, **{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})
        )
        assert (address - START) & 0xFFFFFFFF == 0
        maps[data] = {"array": ARRAYS[(address - START) >> 32], **fields}
        ctypes.memmove(at, data, 128)
        return 0

    wide, narrow, i = ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint32), ctypes.c_int
    hook = ctypes.CFUNCTYPE(i, ctypes.c_void_p, i, i, ctypes.c_uint64, wide, wide, narrow, narrow, i, i, i, i)(taken_down)
    ctypes.c_void_p.in_dll(driver, "hook").value = ctypes.cast(hook, ctypes.c_void_p).value
    library = ctypes.CDLL(str(folder / "lib.so"))
    buffer, how = ctypes.create_string_buffer(1 << 16), Launch()
    start = -(-ctypes.addressof(buffer) // 128) * 128
    pointers = [ctypes.c_uint64(START + (n << 32)) for n in range(len(ARRAYS))]
    m, n, k = GEMMS[name][-1]
    assert library.build(ctypes.c_void_p(start), ctypes.byref(how), *pointers, m, n, k, MULTIPROCESSORS) == 0
    layouts = {}
    for which in (n for n in "aefg" if hasattr(library, f"places_{n}")):
        places = np.zeros((n if which == "g" else m, k), np.uint32)
        getattr(library, f"places_{which}")(places.ctypes.data_as(ctypes.c_void_p), m, n, k)
        steps = np.diff(places.astype(np.int64), axis=0, prepend=0)
        layouts[f"{name}_{which}"] = np.diff(steps, axis=1, prepend=0).astype(np.int32)
    pieces = cut(ctypes.string_at(start, how.size), maps)
    return {
        "grid": list(how.grid), "block": list(how.block), "cluster": list(how.cluster), "shared": how.shared, "params": pieces,
    }, layouts  # fmt: skip


def cut(data: bytes, maps: dict[bytes, dict]) -> list:
    """Cut parameters into bytes (as hexadecimal), pointers (names of arrays) and tensor maps."""
    out, plain, at = [], b"", 0
    while at < len(data):
        word = int.from_bytes(data[at : at + 8], "little")
        piece = maps.get(data[at : at + 128])
        if piece is None and START <= word < START + (len(ARRAYS) << 32) and word & 0xFFFFFFFF == 0:
            piece = ARRAYS[(word - START) >> 32]
        if piece is None:
            plain, at = plain + data[at : at + 8], at + 8
            continue
        out += [["bytes", plain.hex()]] if plain else []
        out.append(["pointer" if isinstance(piece, str) else "map", piece])
        plain, at = b"", at + (8 if isinstance(piece, str) else 128)
    return out + ([["bytes", plain.hex()]] if plain else [])


def main(arguments: list[str]) -> None:
    """Write the files of some GEMMs, or of all."""
    includes, names = arguments[:2], arguments[2:] or list(GEMMS)
    launches_file, layouts_file = HERE / "launches.json", HERE / "layouts.npz"
    PTX.mkdir(exist_ok=True)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            text = compiled(name, includes, Path(folder))
            how, places = launch(name, Path(folder))
        (PTX / f"{name}.sm_{GEMMS[name][0]}.ptx.xz").write_bytes(lzma.compress(text.encode(), preset=9))
        launches = json.loads(launches_file.read_text()) if launches_file.exists() else {}
        launches_file.write_text(json.dumps(dict(sorted({**launches, name: how}.items())), indent=1) + "\n")
        layouts = dict(np.load(layouts_file)) if layouts_file.exists() else {}
        np.savez_compressed(layouts_file, **dict(sorted({**layouts, **places}.items())))
        print(name, len(text), how["grid"])


if __name__ == "__main__":
    main(sys.argv[1:])
