"""Compile tests/data/mojo/kernels.mojo to PTX, without a GPU.

python tests/data/ptx/mojo/regenerate.py, from the repository root, with mojo 1.2.0, max-core and max-mojo-libs 26.7.0.
A file holds one kernel; the kernels' names, which hold a hash, are cut to the functions'.
"""

import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    """Write one file for each architecture and kernel."""
    source = HERE.parents[1] / "mojo" / "kernels.mojo"
    done = subprocess.run(["mojo", "run", str(source)], capture_output=True, text=True, check=True)
    for part in done.stdout.split("//==== ")[1:]:
        head, _, text = part.partition("\n")
        arch, _, name = head.strip().partition("/")
        mangled = re.search(r"\.entry (\S+)\(", text)[1]
        (HERE / f"{name}.{arch}.ptx").write_text(text.replace(mangled, name).strip() + "\n")


if __name__ == "__main__":
    main()
