"""Compile tests/data/triton/*.py to PTX, without a GPU. Run from the repository root with Triton installed; words on the
command line name the kernels to make.

Triton 3.9 made what is committed. The kernels are compiled from a copy in /project, so that no path of this machine gets
into the debug data; file names in `.file` are made relative to the project.
"""

import importlib.util
import lzma
import re
import shutil
import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = Path(__file__).resolve().parent
PROJECT = Path("/project")
SOURCES = PROJECT / "tests" / "data" / "triton"
LARGEST_PLAIN = 49152
LARGEST_OF_MORE = 12288


def load(name):
    """Import a source from its place in /project."""
    shutil.copy(HERE.parents[1] / "triton" / f"{name}.py", SOURCES)
    spec = importlib.util.spec_from_file_location(name, SOURCES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


SOURCES.mkdir(parents=True)
K, M = load("kernels"), load("more")

F, H, B, N = "*fp32", "*fp16", "*bf16", "*i32"
KERNELS = [
    # name, kernel, argument types, constants, options, compute capabilities
    ("vector_add", K.vector_add, [F, F, F, "i32"], {"BLOCK": 512}, {}, (75, 80, 90, 100, 120)),
    ("row_sum", K.row_sum, [F, F, "i32"], {"BLOCK": 1024}, {}, (80, 90)),
    ("row_argmax", K.row_argmax, [F, N, "i32"], {"BLOCK": 512}, {}, (90,)),
    ("softmax", K.softmax, [F, F, "i32"], {"BLOCK": 1024}, {}, (80, 90, 120)),
    ("layer_norm", K.layer_norm, [H, F, F, H, "i32", "fp32"], {"BLOCK": 1024}, {}, (80, 100)),
    ("scan_sum", K.scan_sum, [F, F], {"BLOCK": 512}, {}, (80, 90)),
    ("sort_rows", K.sort_rows, [N, N], {"BLOCK": 128}, {}, (90,)),
    ("histogram", K.histogram, [N, N], {"BLOCK": 512, "BINS": 64}, {}, (80, 90)),
    ("atomics", K.atomics, [N, F, "i32"], {"BLOCK": 128}, {}, (80, 90)),
    ("transpose", K.transpose, [H, H, "i32", "i32"], {"BLOCK": 64}, {}, (80, 90)),
    ("attention", K.attention, [H, H, H, H, "i32", "fp32"], {"BM": 64, "BN": 32, "D": 64}, {}, (80, 90, 100, 120)),
    ("attention.bf16", K.attention, [B, B, B, B, "i32", "fp32"], {"BM": 128, "BN": 64, "D": 64}, {}, (90,)),
    ("random_dropout", K.random_dropout, [F, F, "i32", "fp32", "i32"], {"BLOCK": 256}, {}, (90,)),
    ("casts", K.casts, [F, H, B, "*fp8e4nv", "*fp8e5", "*i8", "i32"], {"BLOCK": 256}, {}, (90, 100)),
    ("math", K.math, [F, F, F, "i32"], {"BLOCK": 128}, {}, (80, 90)),
    ("persistent", K.persistent, [F, F, "i32"], {"BLOCK": 1024}, {}, (80, 90)),
    (
        "matmul_descriptor",
        K.matmul_descriptor,
        [H, H, H, "i32", "i32", "i32"],
        {"BM": 64, "BN": 64, "BK": 64},
        {},
        (90, 100, 120),
    ),
    ("recurrence", K.recurrence, [F, F, F, "i32"], {"BLOCK": 512}, {}, (80,)),
    (
        "layer_norm_backward",
        K.layer_norm_backward,
        [H, H, H, F, F, F, F, F, N, "i32"],
        {"GROUP": 2, "BLOCK": 256},
        {},
        (90,),
    ),
    (
        "split_k.cluster",
        K.split_k,
        [H, H, F, "i32", "i32", "i32"],
        {"BM": 64, "BN": 64, "BK": 32, "SPLIT": 2},
        {"num_ctas": 2},
        (90,),
    ),
    (
        "attention_causal",
        K.attention_causal,
        [H, H, H, H, F, "i32", "fp32"],
        {"BM": 64, "BN": 32, "D": 64},
        {"num_stages": 3},
        (80,),
    ),
    ("attention_tma", K.attention_tma, [H, H, H, H, "i32", "fp32"], {"BM": 64, "BN": 64, "D": 64}, {}, (90,)),
    ("topk", K.topk, [F, F, N, "i32"], {"BLOCK": 256, "K": 8}, {}, (80,)),
    ("gather_flip", K.gather_flip, [F, N, F], {"BLOCK": 16, "N": 32}, {}, (80,)),
    ("cross_entropy", K.cross_entropy, [B, N, F, B, "i32"], {"BLOCK": 256}, {"num_stages": 3}, (80,)),
    (
        "scaled_int8",
        K.scaled_int8,
        ["*i8", F, "*i8", F, B, "i32", "i32", "i32"],
        {"BM": 64, "BN": 64, "BK": 64},
        {"num_stages": 3},
        (80,),
    ),
]
PERSISTENT = {
    "persistent_ws": ("*fp16", {"BM": 64, "BN": 64, "BK": 64, "WS": True}, {}),
    "persistent_f8": ("*fp8e4nv", {"BM": 128, "BN": 64, "BK": 128, "WS": False}, {"num_warps": 8}),
    "persistent_cluster": ("*fp16", {"BM": 128, "BN": 64, "BK": 64, "WS": False}, {"num_ctas": 2}),
}
for name, (of, constants, options) in PERSISTENT.items():
    arguments = [of, of, H, "i32", "i32", "i32"]
    KERNELS.append((name, K.matmul_persistent, arguments, constants, {"num_stages": 3, **options}, (90,)))
DOTS = {"fp16": (H, H), "bf16": (B, F), "tf32": (F, F), "int8": ("*i8", N), "fp8": ("*fp8e4nv", F)}
for name, (of, to) in DOTS.items():
    constants = {"BM": 64, "BN": 64, "BK": 64, "ACC": tl.int32 if name == "int8" else tl.float32}
    capabilities = (90, 100, 120) if name == "fp8" else (80, 90, 100, 120)
    KERNELS.append((f"matmul.{name}", K.matmul, [of, of, to, "i32", "i32", "i32"], constants, {}, capabilities))

L, D = "*i64", "*fp64"
EVERY, TMA = (80, 90, 120), (90, 120)
MORE = [
    (M.reductions, [N, N], {"ROWS": 16, "COLUMNS": 64}, {}, EVERY),
    (M.scans, [N, N], {"ROWS": 8, "COLUMNS": 64}, {}, EVERY),
    (M.sort_down, [F, F], {"ROWS": 4, "COLUMNS": 32}, {}, EVERY),
    (M.random_numbers, [F, F, N, "i32"], {"BLOCK": 256}, {}, EVERY),
    (M.printing, [N, "i32"], {"BLOCK": 32}, {"num_warps": 1, "debug": True}, EVERY),
    (M.calls, [N, "i32"], {}, {"num_warps": 1}, EVERY),
    (M.of_libdevice, [F, F, "i32"], {"BLOCK": 128}, {}, EVERY),
    (M.assembly, ["*u8", "*u8", "*u8"], {"BLOCK": 512}, {}, EVERY),
    (M.integers, [L, L, L], {"BLOCK": 128}, {}, EVERY),
    (M.doubles, [D, D, D], {"M": 16, "N": 16, "K": 16}, {}, EVERY),
    (M.batched, [H, H, F], {"B": 4, "M": 16}, {}, EVERY),
    (M.three_products, [F, F, F], {"M": 32}, {}, EVERY),
    (M.descriptor_sum, [F, F, "i32", "i32"], {"BR": 16, "BC": 32}, {}, TMA),
    (M.descriptor_cube, [H, H], {"A": 4, "B": 8, "C": 64}, {}, TMA),
    (M.half_atomics, [H, F, L, "i32"], {"BLOCK": 128}, {}, EVERY),
    (M.flash_forward, [H, H, H, H, F, "i32", "fp32"], {"BM": 64, "BN": 32, "D": 64, "CAUSAL": True}, {}, EVERY),
    (M.flash_backward, [H, H, H, H, F, F, F, F, "i32", "fp32"], {"BM": 32, "BN": 64, "D": 32}, {}, EVERY),
    (M.grouped_product, [H, H, H, N, "i32", "i32", "i32", "i32"], {"BM": 32, "BN": 32, "BK": 32}, {}, EVERY),
    (K.row_argmax, [F, N, "i32"], {"BLOCK": 512}, {}, (80, 120)),
    (K.layer_norm, [H, F, F, H, "i32", "fp32"], {"BLOCK": 1024}, {}, (90, 120)),
    (K.scan_sum, [F, F], {"BLOCK": 512}, {}, (120,)),
    (K.sort_rows, [N, N], {"BLOCK": 128}, {}, (80, 120)),
    (K.histogram, [N, N], {"BLOCK": 512, "BINS": 64}, {}, (120,)),
    (K.atomics, [N, F, "i32"], {"BLOCK": 128}, {}, (120,)),
    (K.transpose, [H, H, "i32", "i32"], {"BLOCK": 64}, {}, (120,)),
    (K.random_dropout, [F, F, "i32", "fp32", "i32"], {"BLOCK": 256}, {}, (80, 120)),
    (K.casts, [F, H, B, "*fp8e4nv", "*fp8e5", "*i8", "i32"], {"BLOCK": 256}, {}, (120,)),
    (K.math, [F, F, F, "i32"], {"BLOCK": 128}, {}, (120,)),
    (K.persistent, [F, F, "i32"], {"BLOCK": 1024}, {}, (120,)),
    (K.gather_flip, [F, N, F], {"BLOCK": 16, "N": 32}, {}, (90, 120)),
    (K.cross_entropy, [B, N, F, B, "i32"], {"BLOCK": 256}, {"num_stages": 3}, (90, 120)),
]
KERNELS += [(kernel.__name__, kernel, *rest) for kernel, *rest in MORE]


def compile_one(kernel, types, constants, options, capability):
    """Return the PTX of one kernel; pointers and integers divisible by 16, as at most launches."""
    names = kernel.arg_names
    signature = {n: "constexpr" if n in constants else types[names.index(n)] for n in names}
    divisible = {
        (k,): [["tt.divisibility", 16]] for k, n in enumerate(names) if signature[n][0] == "*" or signature[n] == "i32"
    }
    keyed = {(names.index(n),): v for n, v in constants.items()}
    source = ASTSource(fn=kernel, signature=signature, constexprs=keyed, attrs=divisible)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options or None).asm["ptx"]


def main():
    """Write one file per kernel and architecture."""
    only = sys.argv[1:]
    for old in HERE.glob("*.ptx*") if not only else ():
        old.unlink()
    more = {id(kernel) for kernel, *_ in MORE}
    for name, kernel, types, constants, options, capabilities in KERNELS:
        if only and name not in only and f"{name}.sm_{capabilities[0]}" not in only:
            continue
        for capability in capabilities:
            try:
                text = compile_one(kernel, types, constants, options, capability)
            except Exception as error:
                print("FAILED", name, capability, type(error).__name__, str(error).strip().splitlines()[:3])
                continue
            text = re.sub(r'(\.file\s+\d+\s+)"[^"]*?([^"/]*)"', r'\1"tests/data/triton/\2"', text)
            path = HERE / f"{name}.sm_{capability}.ptx"
            if len(text) > (LARGEST_OF_MORE if id(kernel) in more else LARGEST_PLAIN):
                path.with_suffix(".ptx.xz").write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
            else:
                path.write_text(text)
            print(path.name, len(text))


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(PROJECT)
