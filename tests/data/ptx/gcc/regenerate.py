"""Compile tests/data/openacc/regions.c to PTX with GCC, without a GPU.

python tests/data/ptx/gcc/regenerate.py, from the repository root. Debian's gcc-12 12.2 with gcc-12-offload-nvptx made what is
committed. Its assembler (`nvptx-none-as`) puts declarations in front of their uses; what it writes is what the driver gets.
"""

import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "openacc" / "regions.c"
VERSIONS = {"sm_30": "6.0", "sm_53": "6.0", "sm_80": "7.0"}


def main():
    """Write one file for each architecture."""
    for arch, version in VERSIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            options = ["-O2", "-fopenacc", "-save-temps", "-foffload=nvptx-none"]
            options.append(f"-foffload-options=nvptx-none=-misa={arch} -mptx={version}")
            # the link fails where ptxas does not know the architecture; the text has been written by then
            subprocess.run(["gcc-12", *options, str(SOURCE), "-o", "region"], cwd=folder, check=False, capture_output=True)
            (text,) = Path(folder).glob("*.mkoffload.s")
            out = HERE / f"regions.{arch}.ptx"
            subprocess.run(["nvptx-none-as", "--no-verify", str(text), "-o", str(out)], check=True)


if __name__ == "__main__":
    main()
