"""Have TileLang make CUDA of tests/data/tilelang/kernels.py, and nvcc PTX of that; without a GPU, from the repository root.

TileLang 0.1.15 and nvcc 13.0 made what is committed. TileLang decides by the architecture: cp.async and mma.sync for sm_80; for
sm_90a tensor copies, wgmma and roles of warpgroups (`*_hopper`).
"""

import importlib.util
import lzma
import subprocess
import tempfile
from pathlib import Path

import tilelang
from tilelang import tvm

HERE = Path(__file__).resolve().parent
ROOT = Path(tilelang.__file__).parent
OPTIONS = ["-ptx", "-std=c++17", "-O3", "--expt-relaxed-constexpr", "-DENABLE_BF16", "-w"]


def main():
    """Write one file for each kernel and architecture."""
    spec = importlib.util.spec_from_file_location("kernels", HERE.parents[1] / "tilelang" / "kernels.py")
    kernels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernels)
    for function, arguments, archs in kernels.KERNELS:
        for arch in archs:
            target = tvm.target.Target({"kind": "cuda", "arch": arch})
            with target:
                made = tilelang.lower(function(*arguments), target=target, enable_device_compile=False)
            with tempfile.TemporaryDirectory() as folder:
                source, ptx = Path(folder, "kernel.cu"), Path(folder, "kernel.ptx")
                source.write_text(made.kernel_source)
                includes = [f"-I{ROOT / 'src'}", f"-I{ROOT / '3rdparty' / 'cutlass' / 'include'}"]
                subprocess.run(["nvcc", *OPTIONS, *includes, f"-arch={arch}", str(source), "-o", str(ptx)], check=True)
                packed = lzma.compress(ptx.read_bytes(), preset=9 | lzma.PRESET_EXTREME)
            stem = function.__name__ + ("_hopper" if arch == "sm_90a" else "")
            (HERE / f"{stem}.{arch}.ptx.xz").write_bytes(packed)
            launched = next(line for line in str(made.host_mod).splitlines() if f'"{function.__name__}_kernel"' in line)
            print(stem, arch, launched.strip())


if __name__ == "__main__":
    main()
