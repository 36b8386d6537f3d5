"""Compile tests/data/cuda/objects.cu to PTX with clang, without a GPU.

python tests/data/ptx/clang/regenerate.py, from the repository root; CUDA_HOME says where CUDA is. Debian's clang 19.1 made what
is committed, with the headers of CUDA 13.0; it includes two that CUDA 13 no longer has, and empty ones stand in for them.
`alloca` is left out, for this clang gives it an alignment of 0, which is no PTX.
"""

import os
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CUDA = os.environ.get("CUDA_HOME", "/usr/local/cuda")
MISSING = ("texture_fetch_functions.h", "curand_mtgp32_kernel.h")
ALLOCA = "(int *)alloca(size * sizeof(int))"


def main():
    """Write one file for each architecture."""
    text = (HERE.parents[1] / "cuda" / "objects.cu").read_text()
    assert ALLOCA in text
    with tempfile.TemporaryDirectory() as folder:
        for header in MISSING:
            Path(folder, header).touch()
        Path(folder, "objects.cu").write_text(text.replace(ALLOCA, "nullptr"))
        for arch in ("sm_80", "sm_90"):
            options = ["-x", "cuda", "--cuda-device-only", "-S", "-O2", "-std=c++17", "-Wno-unknown-cuda-version", "-I."]
            options += [f"--cuda-gpu-arch={arch}", f"--cuda-path={CUDA}", f"-I{CUDA}/include/cccl"]
            ptx = HERE / f"objects.{arch}.ptx"
            subprocess.run(["clang-19", *options, "objects.cu", "-o", str(ptx)], check=True, cwd=folder)


if __name__ == "__main__":
    main()
