"""A recording driver in the place of the CUDA driver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from recording_driver import RecordingDriver
from warpsmith.launch.binding import use_driver
from warpsmith.launch.context import forget_contexts

__all__ = ["driver"]


@pytest.fixture
def driver() -> Iterator[RecordingDriver]:
    recording = RecordingDriver()
    use_driver(recording)
    forget_contexts()
    yield recording
    use_driver(None)
    forget_contexts()
