"""Compile tests/data/warp/kernels.py to PTX with Warp (1.19 made what is committed) and its NVRTC, without a GPU.

Run from the repository root: python tests/data/ptx/warp/regenerate.py
"""

import importlib
import lzma
import sys
import tempfile
from pathlib import Path

import warp as wp

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "warp"))


def main():
    """Write one file per architecture; every kernel and its adjoint are in it."""
    with tempfile.TemporaryDirectory() as folder:
        wp.config.kernel_cache_dir = f"{folder}/cache"
        wp.init()
        kernels = importlib.import_module("kernels")
        for kernel in kernels.__dict__.values():
            if isinstance(kernel, wp.Kernel):
                kernel.module.options["block_dim"] = 64
        for arch in (80, 90, 120):
            module = wp.get_module("kernels")
            paths = wp.compile_aot_module(module, arch=arch, use_ptx=True, module_dir=folder, strip_hash=True)
            text = Path(paths[0]).read_text().rstrip("\0")
            (HERE / f"kernels.sm_{arch}.ptx.xz").write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
            print(arch, len(text))


if __name__ == "__main__":
    main()
