"""tcgen05.mma in its forms (PTX ISA 9.7.18.10.10).

The operations of a CTA (of a pair: of its even CTA) complete in the order of issue: products, copies from shared memory,
and commits, which arrive at their barriers when their turn comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.base.arch import parse_arch
from warpsmith.base.errors import CapabilityError
from warpsmith.simulator.async_access import Lane, lanes_of
from warpsmith.simulator.asynchronous import AsyncOperation
from warpsmith.simulator.findings import threads_text
from warpsmith.simulator.instruction_descriptor import decode
from warpsmith.simulator.meanings.registry import machine, refuse
from warpsmith.simulator.operand_values import WIDTH
from warpsmith.simulator.tensor_memory import tensor_memory_of
from warpsmith.simulator.tensor_pipe import Cells, Source, issue
from warpsmith.simulator.tensor_product import Product
from warpsmith.simulator.tensor_sparsity import metadata_columns

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.meanings.registry import Function, Refused

__all__ = ["ctas"]

_COUNTS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4, "block16": 4}


def _refused(words: list[str]) -> str:
    """Return why a form is not modelled; empty: it is."""
    if "ashift" in words:
        return "`.ashift` is not modelled: whether rows move to higher or to lower lanes is not said (9.7.18.10.10.1)"
    if "kind::ti16" in words or any(w.startswith(("decompress::", "collector::b::")) for w in words):
        return "products of sm_107 are not modelled"
    return ""


@machine("tcgen05.mma")
def mma(m: Match) -> Function | Refused:
    """Put a product in flight for each executing thread."""
    words = m.mnemonic.split(".")
    if reason := _refused(words):
        return refuse(reason)
    kind = next(w for w in words if w.startswith("kind::"))[6:]
    names = tuple(slot.name for slot in m.operands)
    in_tensor_memory = next(slot for slot in m.operands if slot.name == "a").kind == "address"
    pair, ws = "cta_group::2" in words, "ws" in words
    count = next((_COUNTS[w] for w in words if w in _COUNTS), 1 if kind == "mxf8f6f4" else 2)

    def run(x: Lanes, *operands: Any) -> None:
        v = dict(zip(names, operands, strict=False))
        tm = tensor_memory_of(x.machine)
        for lane in lanes_of(x):
            how = decode(lane.at(v["i"]) & 0xFFFFFFFF, kind)
            if how.k96 and parse_arch(arch := x.machine.device.arch).number != 103:
                raise CapabilityError(f"simulator: K = 96 (instruction descriptor, bit 31) is of sm_103a, the device {arch}")
            rows = ctas(x, lane, pair)
            if v.get("z") is not None and lane.at(v["z"]) & (1 << 39 | 63 << 56):
                raise CapabilityError("simulator: a zero-column mask of tcgen05.mma.ws that masks or shifts is not modelled")
            product = Product(
                memory=tm, rows=rows, how=how, d=lane.at(v["d"]), a=lane.at(v["a"]), a_in_tensor_memory=in_tensor_memory,
                b=lane.at(v["b"]), accumulate=bool(lane.at(v["enable"])), scale=int(v.get("shift") or 0), ws=ws,
                skipped=tuple(lane.at(w) & 0xFFFFFFFF for w in v["mask"]) if v.get("mask") is not None else (),
                factors=(lane.at(v["sa"]), lane.at(v["sb"])) if "sa" in v else None,
                count=count * 96 // 64 if how.k96 else count,
                metadata=lane.at(v["m"]) if "m" in v else None,
            )  # fmt: skip
            _check(product)
            _issue(x, lane, product)

    return run


def ctas(x: Lanes, lane: Lane, pair: bool, *, reads: bool = True) -> tuple[int, ...]:
    """Return the row of the CTA, or those of the even and the odd one of its pair; `reads`: their shared memory is read."""
    if not pair:
        return (lane.row,)
    peer = tensor_memory_of(x.machine).peer(lane.row)
    if peer is None:
        raise CapabilityError(
            f"simulator: `{x.op.text}` needs a pair of CTAs, and the cluster has {x.machine.cluster_size}; "
            "launch clusters of an even number of CTAs"
        )
    if reads and x.machine.peers is not None:
        x.machine.peers.touch(x, lane.row, peer, lane.mask)
    return (min(lane.row, peer), max(lane.row, peer))


def _check(p: Product) -> None:
    """Raise `CapabilityError` for shapes that the kind does not have (9.7.18.2.1, table 42)."""
    how = p.how
    form = f".kind::{how.kind} with .cta_group::{len(p.rows)}{' and .ws' if p.ws else ''}"
    if how.sparse != (p.metadata is not None):
        says, is_ = ("sparse", "dense") if how.sparse else ("dense", "sparse")
        raise CapabilityError(f"simulator: the instruction descriptor of {form} says {says} (bit 2), and the product is {is_}")
    if how.sparse:
        _check_sparse(p, form)
    if how.kind.startswith("mx") and how.m not in (128, 256):
        raise CapabilityError(f"simulator: M = {how.m} is no shape of {form}; use 128 (256 for a pair)")
    if p.parts() is None:
        raise CapabilityError(
            f"simulator: {form} has no layout for M = {how.m} at lane {p.d >> 16} of tensor memory; use M = "
            f"{'128 or 256' if len(p.rows) == 2 else '32, 64 or 128' if p.ws else '64 or 128'} at lane 0"
        )
    if p.ws and how.sparse:
        fits, allowed = how.n in (64, 128), "64 or 128"
    elif p.ws:
        fits, allowed = how.n in (64, 128, 256), "64, 128 or 256"
    elif how.kind == "i8":
        step = 32 if p.pair else 16
        fits = how.n % step == 0 or (how.n in (8, 24) and not p.pair)
        allowed = f"a multiple of {step}, up to 256"
    else:
        step = 16 if p.pair else 8
        fits, allowed = how.n % step == 0, f"a multiple of {step}, up to 256"
    if not fits or not 8 <= how.n <= 256:
        raise CapabilityError(f"simulator: N = {how.n} is no shape of {form}; use {allowed}")
    if p.factors is not None:
        _check_factors(p, form)
    for matrix, mn_major in (("A", how.a_mn_major), ("B", how.b_mn_major)):
        narrow = (how.a if matrix == "A" else how.b) in ("e2m3", "e3m2", "e2m1")
        if mn_major and narrow:
            raise CapabilityError(f"simulator: {matrix} of {form} has 6- or 4-bit elements, which cannot be transposed")
    if p.a_in_tensor_memory and how.k96:
        raise CapabilityError(f"simulator: A in tensor memory with K = 96 is not modelled with {form}; put A in shared memory")
    if p.a_in_tensor_memory and how.a_mn_major:
        raise CapabilityError(f"simulator: A of {form} lies in tensor memory and cannot be transposed (bit 15)")


def _check_sparse(p: Product, form: str) -> None:
    """Raise `CapabilityError` for metadata whose place is left to figures, and no layout is published (9.7.18.10.9.4)."""
    how = p.how
    selectors = 1 if WIDTH[how.a] == 8 else 2
    rows = (32, 64, 128) if p.ws else (128 * len(p.rows),)
    if how.m not in rows or how.selector >= selectors:
        raise CapabilityError(
            f"simulator: sparse products with M = {how.m} and sparsity selector {how.selector} are not modelled with {form}; "
            f"use M = {' or '.join(map(str, rows))} and selector 0{' or 1' if selectors == 2 else ''}"
        )
    lane, column = (p.metadata or 0) >> 16, (p.metadata or 0) & 0xFFFF
    if lane or column % 2:
        raise CapabilityError(
            f"simulator: sparsity metadata of {form} at lane {lane} and column {column} of tensor memory are not modelled: "
            "published layouts begin at lane 0 and an even column; put them there"
        )


def _check_factors(p: Product, form: str) -> None:
    how = p.how
    allowed = {1: (0, 1, 2, 3), 2: (0, 2), 3: (0, 1, 2, 3), 4: (0,), 6: (0, 2)}[p.count]
    for matrix, number in (("A", how.factor_a), ("B", how.factor_b)):
        if number not in allowed:
            one = ", ".join(map(str, allowed))
            raise CapabilityError(
                f"simulator: scale factor id {number} of {matrix} has no meaning for {form}; use one of {one}"
            )
    if how.factor == "ue4m3" and p.count not in (4, 6):
        raise CapabilityError(f"simulator: scale factors of type ue4m3 need .scale_vec::4X or .block16 with {form}")


def _issue(x: Lanes, lane: Lane, product: Product) -> None:
    """Put a product in flight with what it reads and writes."""
    op = AsyncOperation("tcgen05.mma", product.complete, lane.row, x.place, threads_text(x, lane.mask))
    sources = [Source(row, product.b, product.operand_b) for row in product.rows]
    if not product.a_in_tensor_memory:
        sources += [Source(row, product.a, product.operand_a) for row in product.rows]
    issue(x, lane, op, product.rows, sources, _cells(product))


def _cells(p: Product) -> list[Cells]:
    """Return the cells of tensor memory that a product touches."""
    out: list[Cells] = []
    parts = p.parts()
    assert parts is not None
    for part in parts:
        row, lanes = p.rows[part.cta], (int(part.lanes[0]), int(part.lanes[-1]) + 1)
        column = p.d & 0xFFFF
        out.append(Cells(row, *lanes, column, column + part.n1 - part.n0, written=True))
        if p.a_in_tensor_memory:
            out.append(Cells(row, *lanes, p.a & 0xFFFF, (p.a & 0xFFFF) + 8, written=False))
        if p.metadata is not None:
            at = p.metadata_column
            out.append(Cells(row, *lanes, at, at + metadata_columns(p.how.a), written=False))
        if p.factors is not None:
            for which, size in enumerate((len(part.lanes), part.n1 - part.n0)):
                out += [Cells(row, *lanes, *run, written=False) for run in p.factor_columns(which, size)]
    return out
