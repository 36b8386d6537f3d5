"""Resolve pyproject.toml into the lock files beside this script, with hashes, for every platform and Python.

All locks are subsets of one resolution, so that they can be installed into one environment in any order.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent / "pyproject.toml"
LOCKS = {
    "demo": ["--group=build"],
    "test": ["--extra=cuda", "--group=build", "--group=test"],
    "dev": ["--extra=cuda", "--group=build", "--group=test", "--group=lint"],
    "docs": ["--group=build", "--group=docs"],
    "lock": ["--group=build", "--group=lock"],
}
"""Lock file -> what of pyproject.toml goes into it, besides the dependencies of the package itself."""
OPTIONS = [
    "--upgrade",
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-header",
    "--no-annotate",
]


def resolve(options: list[str], output: Path) -> None:
    """Run uv's resolver; leave `output` without a host, a path of this machine or a comment."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", PROJECT.name, *options, *OPTIONS]
    subprocess.run([*command, "--output-file", str(output)], cwd=PROJECT.parent, check=True)


def main() -> None:
    """Write every lock file."""
    everything = sorted({option for options in LOCKS.values() for option in options})
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "all.lock"
        resolve(everything, whole)
        for name, options in LOCKS.items():
            resolve([*options, "--constraints", str(whole)], HERE / f"{name}.lock")
            print(f"requirements/{name}.lock")


if __name__ == "__main__":
    main()
