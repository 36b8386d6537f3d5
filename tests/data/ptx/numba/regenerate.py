"""Compile tests/data/numba/kernels.py to PTX without a GPU; numba-cuda 0.30 with NVVM of CUDA 13.5 made what is committed.

python tests/data/ptx/numba/regenerate.py, from the repository root. Names are made short and free of this machine's paths.
"""

import importlib.util
import re
from pathlib import Path

from numba import complex128, cuda, float32, float64, int32

HERE = Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("kernels", HERE.parents[1] / "numba" / "kernels.py")
K = importlib.util.module_from_spec(spec)
spec.loader.exec_module(K)

KERNELS = {
    K.block_sum: (float32[::1], float32[::1]),
    K.product: (float32[:, ::1], float32[:, ::1], float32[:, ::1]),
    K.functions: (float64[::1], float64[:, ::1]),
    K.warps: (int32[::1], int32[::1]),
    K.scratch: (int32[:, ::1], int32[:, ::1]),
    K.atomics: (int32[::1], int32[::1], int32[::1]),
    K.complex_map: (complex128[::1], int32[::1]),
    K.talk: (int32[::1],),
}


def main():
    """Write one file per kernel and architecture."""
    for kernel, types in KERNELS.items():
        for capability in ((8, 0), (9, 0), (12, 0)):
            text, _ = cuda.compile_ptx(kernel, types, cc=capability)
            long = re.search(r"\.visible \.entry (\w+)", text)[1]
            text = text.replace(long, kernel.__name__)
            text = re.sub(r"^\.common \.global .*NumbaEnv.*\n", "", text, flags=re.MULTILINE)
            (HERE / f"{kernel.__name__}.sm_{capability[0]}{capability[1]}.ptx").write_text(text)
            print(kernel.__name__, capability, len(text), re.findall(r"extern \.func.*", text))


if __name__ == "__main__":
    main()
