"""Run programs of `tcgen05_program`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcgen05_program import BYTES, module
from warpsmith.assembly.ptx import parse
from warpsmith.simulator.api import simulate


@pytest.fixture(scope="session")
def run() -> Any:
    def launch(middle: str, out: np.ndarray, image: np.ndarray | None = None, *args: Any, ctas: int = 1, **options: Any) -> Any:
        names = ("columns", "group", "target", "threads", "head", "parameters", "tail", "bytes_", "directives")
        shape = {name: options.pop(name) for name in names if name in options}
        image = np.zeros(ctas * shape.get("bytes_", BYTES), np.uint8) if image is None else image
        text = module(middle, **shape)
        how = {"grid": (ctas, 1, 1), "cluster": (ctas, 1, 1), "block": (shape.get("threads", 128), 1, 1), **options}
        return simulate(parse(text), kernel="k", args=[out, image, *args], **how)

    return launch
