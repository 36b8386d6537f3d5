"""Compile tests/data/cute/*.py to PTX with the CuTe DSL, without a GPU: once for each architecture (`hopper.py` for sm_90a).

mkdir dump; export CUTE_DSL_KEEP_PTX=1 CUTE_DSL_DUMP_DIR=$PWD/dump PYTHONPATH=tests/data/cute
for arch in sm_80 sm_90a sm_100a sm_120a; do CUTE_DSL_ARCH=$arch python tests/data/ptx/cute/regenerate.py; done
"""

import os
import sys
from pathlib import Path

import hopper
import kernels
from cutlass import cute

HERE = Path(__file__).resolve().parent


def main():
    """Write one file per kernel for the architecture that the environment names."""
    arch = os.environ["CUTE_DSL_ARCH"]
    every = {**kernels.KERNELS, **(hopper.KERNELS if arch == "sm_90a" else {})}
    for name, (function, arguments) in every.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        text = cute.compile(function, *arguments()).__ptx__
        text = text if "\n" in text else Path(text).read_text()
        (HERE / f"{name}.{arch}.ptx").write_text(text.rstrip("\0"))
        print(name, arch, len(text))


if __name__ == "__main__":
    main()
