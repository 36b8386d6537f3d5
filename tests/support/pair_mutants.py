"""The mutants of the Blackwell attention kernel for pairs of CTAs, and the table of what is found of each.

`tests/data/mutants/blackwell_pair.txt`: a mutant a line; its name, the kind of the finding, where it points to, and the
schedule under which it is found. Of a mutant that is a correct kernel the kind is `equivalent`, and the place is the reason; of
one that only computes something else it is `wrong result`. A star before the name: it is tried in `make test`, too.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from tree_mutants import Edit, Mutant, Site, Verdict, findings_of, mutants
from warpsmith.kernels.attention.blackwell import two_cta

__all__ = ["ORDERS", "TABLE", "Row", "all_mutants", "correct", "finds", "rows", "run"]

TABLE = Path(__file__).parents[1] / "data" / "mutants" / "blackwell_pair.txt"
OPCODES = ("mbarrier.", "fence.", "bar.", "barrier.", "cp.async", "tcgen05.", "setmaxnreg", "mapa")
ORDERS: list[dict[str, Any]] = [
    {}, *({"schedule": "adversarial", "seed": s} for s in (0, 1, 2)), *({"schedule": "random", "seed": s} for s in (1, 3)),
    *({"schedule": "adversarial", "seed": 37, **calm} for calm in ({}, {"calm": True})),
]  # fmt: skip
"""Schedules a mutant is tried under; adversarial seed 37 starves the first correction warp."""
_MORE = {
    "products.free_slot tcgen05.commit": (3,), "products._item tcgen05.commit": (1,),
    "softmax.publish_p mbarrier.arrive.shared::cluster": (1,), "peers.lead mapa": (1, 2),
    "program._meet barrier.cluster.arrive": (1,), "softmax.publish mbarrier.try_wait": (1,),
    "softmax.tile mbarrier.try_wait": (1,), "loader._slot mbarrier.try_wait": (1,), "loader.end mbarrier.try_wait": (3,),
    "correction.take mbarrier.try_wait": (2,), "correction.finish tcgen05.wait::ld": (3,),
    "products.issue_output mbarrier.try_wait": (2,), "products.wait mbarrier.try_wait": (1,),
    "products.wait_slot mbarrier.try_wait": (1,),
    "program._initialise mbarrier.init": (2, 6, 10, 12, 14, 18, 20, 28, 36, 37),
}  # fmt: skip
"""Sites besides the first of each kind in a function that do something else than it."""
_BARRIERS = {
    0: "q_full", 2: "kv_full", 6: "kv_free", 10: "s_full", 12: "o_done", 14: "p_full", 18: "rescaled", 20: "statistics_full",
    28: "statistics_free", 36: "q_free", 37: "output_read",
}  # fmt: skip


class Row(NamedTuple):
    """A line of the table."""

    name: str
    kind: str
    place: str
    schedule: str
    quick: bool

    @property
    def order(self) -> dict[str, Any]:
        """The schedule as options of `simulate`."""
        if self.schedule == "fair":
            return {}
        name, seed, *calm = self.schedule.split()
        return {"schedule": name, "seed": int(seed), **({"calm": True} if calm else {})}


@cache
def subject() -> Any:
    """Return the kernel: two work items of one cluster, three key tiles with a masked tail."""
    return two_cta.build(two_cta.Config(heads=2, sequence=300, dim=64, dtype="bf16", multiprocessors=2, order_probe=True))


@cache
def inputs(*, calm: bool) -> list[Any]:
    """Return q, k and v; keys grow along the sequence, so that rows rescale, unless they are `calm`."""
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((2, 300, 64)) * s for s in (0.5, 0.5, 1.0))
    k = k * (1 if calm else 1 + 12 * np.arange(300)[:, None] / 300)
    return [x.astype(ml_dtypes.bfloat16) for x in (q, k, v)]


def run(*, calm: bool = False, **order: Any) -> Any:
    """Run the kernel as it is now."""
    arrays = [a.copy() for a in inputs(calm=calm)]
    return subject().simulate(*arrays, numerics="fast", max_steps=60_000, **order)


@cache
def correct(*, calm: bool = False) -> tuple[bytes, ...]:
    """Return the outputs of the kernel as it is shipped."""
    result = run(calm=calm)
    assert result.completed
    assert result.findings == []
    return tuple(np.asarray(o).tobytes() for o in result.outputs)


def _keep(site: Site, edit: Edit) -> bool:
    key = site.name.rsplit(" ", 1)[0]
    if edit.what == "16 columns further" and "tcgen05.ld" in site.name:
        return False
    again = edit.what in ("other parity", "twice", "mask 1", "mask 2") and "init" not in site.name
    if key == "products.free_slot tcgen05.commit" and edit.what == "before the last product":
        return False  # the product that follows it is one of the next group
    if site.name == "products.issue_output mbarrier.try_wait 0" and edit.what == "not looked at":
        return False  # of tiles that move no row here; site 2 stands for it
    return site.number == 0 or (site.number in _MORE.get(key, ()) and not again)


@cache
def all_mutants() -> dict[str, Mutant]:
    """Return the mutants by name; barriers that are initialised have theirs in place of a number."""
    found = mutants(subject().module(), OPCODES, _keep)

    def named(name: str) -> str:
        site, _, what = name.partition(", ")
        where, _, number = site.rpartition(" ")
        return f"{where} {_BARRIERS[int(number)]}, {what}" if "mbarrier.init" in name else name

    return {named(n): m for n, m in found.items()}


def rows() -> list[Row]:
    """Return the table."""
    out: list[Row] = []
    for line in TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            name, kind, place, schedule = line.split(" | ")
            out.append(Row(name.removeprefix("*"), kind, place, schedule, name.startswith("*")))
    return out


def finds(row: Row) -> Verdict:
    """Return what a row's schedule shows of its mutant."""
    with all_mutants()[row.name].applied():
        result = run(**row.order)
    differs = tuple(np.asarray(o).tobytes() for o in result.outputs) != correct(calm=row.order.get("calm", False))
    return Verdict(row.schedule, findings_of(result), differs)
