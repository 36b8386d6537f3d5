"""Compare the simulator's meanings with what hardware gave, form by form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from warpsmith.hardware.scalar_evaluate import evaluate
from warpsmith.hardware.scalar_forms import ScalarForm
from warpsmith.hardware.scalar_store import BLOCK, Captured, block_hashes
from warpsmith.hardware.scalar_values import edge_count, inputs
from warpsmith.simulator.meanings import registry

__all__ = ["Difference", "compare_captured", "compare_outputs", "is_refused", "report"]

Array = NDArray[Any]
_SAMPLES = 6


def is_refused(form: ScalarForm) -> bool:
    """Say whether the simulator refuses the form."""
    return isinstance(registry.build(form.match()), registry.Refused)


@final
@dataclass(frozen=True, slots=True)
class Difference:
    """A form whose results differ: how many of which inputs, with samples `inputs -> hardware, simulator`."""

    form: ScalarForm
    edges: int
    random: int
    """Differing random results, or differing blocks of 64 when only hashes are known."""
    samples: tuple[str, ...]

    def __str__(self) -> str:
        head = f"{self.form.key} ({', '.join(self.form.reads)}): {self.edges} edge, {self.random} random"
        return "\n".join([head, *(f"    {s}" for s in self.samples)])


def _sample(ins: list[Array], hardware: Array, ours: Array, at: int) -> str:
    return f"{' '.join(f'{int(x[at]):x}' for x in ins)} -> {int(hardware[at]):x}, simulator {int(ours[at]):x}"


def _samples(ins: list[Array], hardware: Array, ours: Array) -> list[str]:
    bad = np.flatnonzero(hardware != ours)
    step = max(1, len(bad) // _SAMPLES)
    return [_sample(ins, hardware, ours, int(i)) for i in bad[::step][:_SAMPLES]]


def compare_outputs(form: ScalarForm, ins: list[Array], outputs: list[Array]) -> Difference | None:
    """Compare all results of a form; None when they agree or the simulator refuses the form."""
    if is_refused(form):
        return None
    ours = evaluate(form, ins)
    n = edge_count(form.reads)
    edges = sum(int((h[:n] != o[:n]).sum()) for h, o in zip(outputs, ours, strict=True))
    random = sum(int((h[n:] != o[n:]).sum()) for h, o in zip(outputs, ours, strict=True))
    if not edges and not random:
        return None
    samples = [s for h, o in zip(outputs, ours, strict=True) for s in _samples(ins, h, o)]
    return Difference(form, edges, random, tuple(samples))


_inputs = lru_cache(maxsize=4)(inputs)


def compare_captured(captured: Captured, blocks: int | None = None) -> Difference | None:
    """Compare with a stored capture: edge results one by one, random ones by their hashes.

    `blocks` limits how many hashes of 64 results are compared. None also for a form that the simulator refuses.
    """
    form = captured.form
    if is_refused(form):
        return None
    n = edge_count(form.reads)
    stop = None if blocks is None else n + BLOCK * blocks
    ins = [x[:stop] for x in _inputs(form.reads)]
    ours = evaluate(form, ins)
    edges, wrong, samples = 0, 0, list[str]()
    for hardware, hashes, mine in zip(captured.edges, captured.hashes, ours, strict=True):
        edges += int((hardware != mine[:n]).sum())
        samples += _samples(ins, hardware, mine[:n])
        found = block_hashes(mine[n:])
        wrong += int((hashes[: len(found)] != found).sum())
    return Difference(form, edges, wrong, tuple(samples)) if edges or wrong else None


def report(differences: Iterable[Difference], total: int) -> str:
    """Return the text of a comparison: a count, then the forms that differ."""
    found = list(differences)
    return "\n".join([f"{total} forms, {len(found)} differ", *(str(d) for d in found)])
