"""Compile tests/data/cuda/runtime.cu to PTX with NVRTC of three versions, without a GPU.

python tests/data/ptx/nvrtc/regenerate.py FOLDER, from the repository root; FOLDER/11.8, /12.4 and /13.5 hold the packages
nvidia-cuda-nvrtc-cu11 11.8.89, nvidia-cuda-nvrtc-cu12 12.4.127 and nvidia-cuda-nvrtc 13.5.37, unpacked. Each version compiles
in a process of its own.
"""

import ctypes
import lzma
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILES = {
    "sm_80.debug": ("11.8", "-arch=compute_80", "-G"),
    "sm_80.relocatable": ("12.4", "-arch=compute_80", "-rdc=true"),
    "sm_90a.lines": ("13.5", "-arch=compute_90a", "-lineinfo"),
}


def compiled(folder, options):
    """Return the PTX that the library in a folder makes."""
    for builtins in folder.resolve().rglob("libnvrtc-builtins.so*"):
        ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(min(folder.resolve().rglob("libnvrtc.so*"))))
    source, program, size = (HERE.parents[1] / "cuda" / "runtime.cu").read_bytes(), ctypes.c_void_p(), ctypes.c_size_t()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source, b"runtime.cu", 0, None, None) == 0
    os.chdir("/")  # which the text names
    words = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    assert library.nvrtcCompileProgram(program, len(options), words) == 0
    assert library.nvrtcGetPTXSize(program, ctypes.byref(size)) == 0
    text = ctypes.create_string_buffer(size.value)
    assert library.nvrtcGetPTX(program, text) == 0
    return text.value


def main():
    """Write all files, or the one that the second argument names."""
    if len(sys.argv) == 2:
        for name in FILES:
            subprocess.run([sys.executable, __file__, sys.argv[1], name], check=True)
        return
    version, *options = FILES[sys.argv[2]]
    (HERE / f"runtime.{sys.argv[2]}.ptx.xz").write_bytes(lzma.compress(compiled(Path(sys.argv[1], version), options), preset=9))


if __name__ == "__main__":
    main()
