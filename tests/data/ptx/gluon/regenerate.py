"""Compile tests/data/gluon/kernels.py to PTX without a GPU: python tests/data/ptx/gluon/regenerate.py from the repository root.

Triton 3.9 made what is committed. The kernels are compiled from a copy in /project, as those of ../triton are.
"""

import importlib.util
import lzma
import re
import shutil
import sys
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource

HERE = Path(__file__).resolve().parent
PROJECT = Path("/project")
SOURCES = PROJECT / "tests" / "data" / "gluon"
EVERY, TMA, HOPPER = (80, 90, 120), (90, 120), (90,)
F, H, N = "*fp32", "*fp16", "*i32"


def described(kind, *block, **more):
    """The type of a tensor descriptor that the host makes."""
    layout = gl.NVMMASharedLayout.get_default_for(list(block), gl.float32 if kind == "fp32" else gl.float16, **more)
    return f"tensordesc<{kind}[{','.join(map(str, block))}],{layout!r}>"


TILE, TALL, SUM = described("fp16", 64, 64), described("fp16", 128, 64), described("fp32", 16, 32)
CLUSTERS = ("cluster_transpose", "shared_tile")
"""What runs by clusters of two CTAs."""
KERNELS = [
    # kernel, argument types, constants, compute capabilities
    ("pipelined_sum", [F, F, F, "i32"], {"BUFFERS": 3, "BLOCK": 128}, EVERY),
    ("product_of_warps", [H, H, H, "i32", "i32", "i32"], {"BM": 64, "BN": 64, "BK": 32, "STAGES": 3}, EVERY),
    ("product_of_warpgroups", [TILE, TILE, TILE], {"STAGES": 3, "num_warps": 4}, HOPPER),
    ("specialised_product", [TILE, TILE, TILE, "i32", "i32"], {"STAGES": 2, "num_warps": 4}, HOPPER),
    ("specialised_attention", [TILE] * 4 + ["i32", "fp32"], {"STAGES": 2, "num_warps": 4}, HOPPER),
    ("shuffled", [N, N, N, N], {"N": 256}, EVERY),
    ("tensor_sums", [SUM, SUM], {"BLOCK": 16}, TMA),
    ("cluster_transpose", [F, F], {"B": 64}, HOPPER),
    ("shared_tile", [described("fp32", 32, 32, cga_layout=[[0, 0]]), F], {"BR": 32, "BC": 32}, HOPPER),
    ("tensor_memory_product", [TALL, TILE, TALL, "i32", "i32"], {"STAGES": 2}, (100,)),
    ("tensor_sum", [SUM, SUM, SUM, "i32"], {"STAGES": 3}, TMA),
]


def main():
    """Write one file for each kernel and architecture."""
    SOURCES.mkdir(parents=True)
    shutil.copy(HERE.parents[1] / "gluon" / "kernels.py", SOURCES)
    spec = importlib.util.spec_from_file_location("kernels", SOURCES / "kernels.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernels"] = module
    spec.loader.exec_module(module)
    for old in HERE.glob("*.ptx*"):
        old.unlink()
    for name, types, constants, capabilities in KERNELS:
        kernel = getattr(module, name)
        names = kernel.arg_names
        signature = {n: "constexpr" if n in constants else types[i] for i, n in enumerate(names)}
        divisible = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if signature[n][0] == "*"}
        if name == "product_of_warps":
            divisible |= {(i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if signature[n] == "i32"}
        keyed = {(names.index(n),): v for n, v in constants.items()}
        for capability in capabilities:
            source = GluonASTSource(fn=kernel, signature=signature, constexprs=keyed, attrs=divisible)
            options = {"num_warps": 4, "num_ctas": 2 if name in CLUSTERS else 1}
            made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
            text = re.sub(r'(\.file\s+\d+\s+)"[^"]*?([^"/]*)"', r'\1"tests/data/gluon/\2"', made.asm["ptx"])
            path = HERE / f"{name}.sm_{capability}.ptx.xz"
            path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
            print(path.name, len(text), "shared", made.metadata.shared, "warps", made.metadata.num_warps)


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(PROJECT)
