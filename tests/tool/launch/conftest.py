"""A recording driver in the place of the CUDA driver; tests of torch and JAX where the package is installed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from recording_driver import RecordingDriver
from warpsmith.launch.binding import use_driver
from warpsmith.launch.context import forget_contexts

collect_ignore = [f"test_{name}.py" for name in ("torch", "jax") if find_spec(name) is None]


@pytest.fixture
def driver() -> Iterator[RecordingDriver]:
    recording = RecordingDriver()
    use_driver(recording)
    forget_contexts()
    yield recording
    use_driver(None)
    forget_contexts()
