"""All captures of an architecture as one: what each is, how it is built and run, where it is kept, how it is replayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.hardware import (
    differential_capture,
    family_capture,
    flow_capture,
    machine_capture,
    program_capture,
    scalar_capture,
    tensor_capture,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from warpsmith.hardware.command import Differing

__all__ = ["KINDS", "Kind"]


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """One capture."""

    name: str
    title: str
    build: Callable[[str, Path], str]
    """(architecture, folder for cubins) -> a line."""
    run: Callable[[Path, Path], str]
    """(folder of cubins, folder for results) -> a report."""
    differing: Callable[[Path], Differing]
    """File -> how many forms it holds, and what differs by form."""
    file: str
    """Its file among the results."""

    def kept(self, arch: str) -> str:
        """Return the name the file has in the repository."""
        stem, _, ending = self.file.rpartition(".")
        return f"{stem}-{arch}.{ending}"


KINDS = (
    Kind(
        "scalar", "scalar instructions", scalar_capture.build, scalar_capture.run, scalar_capture.differing, "scalar.capture"
    ),
    Kind(
        "programs", "warp-level and atomic programs", program_capture.build, program_capture.run_condensed,
        program_capture.differing, "programs.npz",
    ),
    Kind(
        "machine", "memory, barriers, asynchronous and matrix moves", machine_capture.build, machine_capture.run,
        machine_capture.differing, "machine.capture",
    ),
    Kind(
        "tensor", "descriptors, fragments and tensor copies", tensor_capture.build, tensor_capture.run,
        tensor_capture.differing, "tensor.npz",
    ),
    Kind(
        "families", "products of tensor cores", family_capture.build, family_capture.run, family_capture.differing,
        "families.capture",
    ),
    Kind(
        "differential", "random straight-line programs", differential_capture.build, differential_capture.run,
        differential_capture.differing, "differential.capture",
    ),
    Kind(
        "flow", "random programs of many threads", flow_capture.build, flow_capture.run, flow_capture.differing,
        "flow.capture",
    ),
)  # fmt: skip
