"""Products of tensor cores, every form of an architecture: the same PTX and operands for a GPU and for the simulator.

A form is a mnemonic, with its sparsity selector. Its program runs on CTAs of four warps, each CTA on operands of its own: the
first n CTAs compute the same whatever the grid. Words in memory, of 32 bits (64 for f64):

    in   [CTA][what wgmma finds in shared memory | register of A, B, C, metadata][thread]
    out  [CTA][register of D][thread]
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.assembly.ptx.isa import Match, OperandSlot, match, rows
from warpsmith.base.arch import parse_arch
from warpsmith.hardware.scalar_forms import mnemonics
from warpsmith.hardware.tensor_values import REGIMES, SUMS, WIDTHS, codes, metadata, sums
from warpsmith.simulator.matrix_descriptor import MatrixDescriptor, encode
from warpsmith.simulator.meanings import registry
from warpsmith.simulator.sparse import Sparsity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["OUTPUTS", "Family", "families", "module_text"]

OUTPUTS = 100_000
"""Results that the forms of one row of the declarations have together, at least."""
_THREADS = 128
_VERSION = (9, 0)
_A_BYTES = 2048
"""Shared memory of wgmma's A: 64 rows of 32 bytes, as 8 x 16-byte core matrices side by side."""


@final
@dataclass(frozen=True, slots=True)
class Family:
    """One form and how many CTAs run it; `number` chooses its operands."""

    number: int
    mnemonic: str
    row: str
    selector: int | None
    ctas: int

    @property
    def key(self) -> str:
        """The mnemonic, with `#f` and the sparsity selector; `registers` when wgmma takes A from them."""
        name = self.mnemonic if self.selector is None else f"{self.mnemonic}#f{self.selector}"
        return f"{name} registers" if self.wgmma and self.shape_of("a") is not None else name

    @property
    def wgmma(self) -> bool:
        """Whether it is a warpgroup's product."""
        return self.mnemonic.startswith("wgmma")

    @property
    def match(self) -> Match:
        """The declaration's match."""
        return next(m for m in match(self.mnemonic) if m.row.id == self.row)

    def shape_of(self, operand: str) -> int | None:
        """Return the registers of an operand; None when it has none."""
        return next((s.count for s in self.match.operands if s.name == operand), None)

    @property
    def types(self) -> tuple[str, str, str, str]:
        """Element types of D, A, B and C."""
        found = [w for w in self.mnemonic.split(".") if w in WIDTHS]
        return (found[0], found[1], found[2], found[3] if len(found) > 3 else found[0])

    @property
    def size(self) -> tuple[int, int, int]:
        """M, N and K."""
        m = re.search(r"\.m(\d+)n(\d+)k(\d+)", self.mnemonic)
        assert m is not None
        return int(m[1]), int(m[2]), int(m[3])

    @property
    def unit(self) -> int:
        """Bytes of a word."""
        return 8 if self.types[0] == "f64" else 4

    @property
    def sparse(self) -> bool:
        """Whether A is stored by half."""
        return ".sp" in self.mnemonic

    @property
    def image(self) -> int:
        """Bytes that wgmma's operands take in shared memory; 0 for mma."""
        return _A_BYTES + self.size[1] // 8 * (512 if self.sparse else 256) if self.wgmma else 0

    @property
    def registers(self) -> list[tuple[str, int]]:
        """Operands in registers that are loaded, in order, with their counts."""
        names = ("a", "d") if self.wgmma else ("a", "b", "c")
        found = [(n, c) for n in names if (c := self.shape_of(n)) is not None]
        return [*found, ("e", 1)] if self.sparse else found

    @property
    def words_in(self) -> int:
        """Words of input of a CTA."""
        return self.image // self.unit + _THREADS * sum(c for _, c in self.registers)

    @property
    def words_out(self) -> int:
        """Words of output of a CTA."""
        return _THREADS * (self.shape_of("d") or 0)

    def text(self, name: str) -> str:
        """Return the kernel `name(.u64 out, .u64 in)`."""
        return _kernel(self, name)

    def arguments(self, ctas: int) -> list[NDArray[Any]]:
        """Return the output, zeroed, and the input of the first `ctas` CTAs."""
        dtype = np.dtype(f"u{self.unit}")
        return [np.zeros(ctas * self.words_out, dtype), _inputs(self, ctas).astype(dtype).reshape(-1)]


# --- the kernel -------------------------------------------------------------------------------------------------------


def _kernel(f: Family, name: str) -> str:
    kind, unit = ("b64", 8) if f.unit == 8 else ("b32", 4)
    r = "%fd" if f.unit == 8 else "%r"
    declared = ".reg .f64 %fd<40>;" if f.unit == 8 else ""
    places: dict[str, list[str]] = {}
    load: list[str] = []
    at = 0
    for operand, count in f.registers:
        places[operand] = [f"{r}{at + k}" for k in range(count)]
        load += [
            f" ld.global.{'f64' if unit == 8 else kind} {r}{at + k}, [%in+{(at + k) * _THREADS * unit}];" for k in range(count)
        ]
        at += count
    if "d" not in places:
        places["d"] = [f"{r}{at + k}" for k in range(f.shape_of("d") or 0)]
        at += len(places["d"])
    store = [f" st.global.{'f64' if unit == 8 else kind} [%out+{k * _THREADS * unit}], {x};" for k, x in enumerate(places["d"])]
    operands = ", ".join(_written(f, slot, places) for slot in f.match.operands)
    fence = (
        ("wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;")
        if f.wgmma
        else ("", "")
    )
    return f"""
.visible .entry {name}(.param .u64 out, .param .u64 in)
{{
 .reg .b32 %r<{max(at, 1)}>, %t, %c, %s, %n, %v<4>; .reg .b64 %out, %in, %d, %da, %db; .reg .pred %p, %q; {declared}
 mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; ld.param.u64 %out, [out]; ld.param.u64 %in, [in];
 mad.wide.u32 %out, %c, {f.words_out * unit}, %out; mad.wide.u32 %in, %c, {f.words_in * unit}, %in;
{_image(f) if f.wgmma else ""} mad.wide.u32 %out, %t, {unit}, %out; mad.wide.u32 %in, %t, {unit}, %in; setp.eq.u32 %p, 0, 0;
{chr(10).join(load)}
 {fence[0]}
 {f.mnemonic} {operands};
 {fence[1]}
{chr(10).join(store)}
 ret;
}}
"""


def _image(f: Family) -> str:
    step = 512 if f.sparse else 256
    a, b = encode(MatrixDescriptor(0, 128, 256, "none")), encode(MatrixDescriptor(_A_BYTES, 128, step, "none"))
    return f""" .shared .align 1024 .b8 buf[{f.image}];
 mov.u32 %s, buf; shr.u32 %n, %s, 4; cvt.u64.u32 %d, %n; add.u64 %da, %d, {a}; add.u64 %db, %d, {b};
 shl.b32 %n, %t, 4; add.u32 %s, %s, %n; cvt.u64.u32 %d, %n; add.u64 %d, %d, %in;
FILL:
 setp.ge.u32 %q, %n, {f.image}; @%q bra FILLED;
 ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%d]; st.shared.v4.b32 [%s], {{%v0, %v1, %v2, %v3}};
 add.u32 %n, %n, 2048; add.u32 %s, %s, 2048; add.u64 %d, %d, 2048; bra FILL;
FILLED:
 fence.proxy.async.shared::cta; bar.sync 0; add.u64 %in, %in, {f.image};
"""


def _written(f: Family, slot: OperandSlot, places: dict[str, list[str]]) -> str:
    if slot.name in places and slot.name != "e":
        return "{" + ", ".join(places[slot.name]) + "}"
    if slot.kind == "immediate":
        if slot.name == "f":
            return str(f.selector)
        choices = slot.choices or (0,)
        return str(choices[(f.number >> (slot.name == "sb")) % 2]) if slot.name in ("sa", "sb") else "0"
    return {"a": "%da", "b": "%db", "e": places.get("e", [""])[0], "scale": "%p"}[slot.name]


def module_text(families_: list[Family], arch: str) -> str:
    """Return a module of kernels k0, k1, … for the families."""
    head = f".version {_VERSION[0]}.{_VERSION[1]}\n.target {arch}\n.address_size 64\n"
    return head + "".join(f.text(f"k{i}") for i, f in enumerate(families_))


# --- operands ---------------------------------------------------------------------------------------------------------


def _inputs(f: Family, ctas: int) -> NDArray[np.uint64]:
    """Return the words `[CTA, words_in]`."""
    parts = [_image_words(f, ctas)] if f.wgmma else []
    for k, (operand, count) in enumerate(f.registers):
        parts.append(_register_words(f, operand, count, k, ctas).reshape(ctas, -1))
    return np.concatenate(parts, axis=1)


def _packed(elements: NDArray[np.uint64], width: int, unit: int) -> NDArray[np.uint64]:
    """Pack elements `[…, parts]` into words, the lowest first."""
    shifts = np.arange(unit * 8 // width, dtype=np.uint64) * np.uint64(width)
    return np.bitwise_or.reduce(elements << shifts, axis=-1)


def _register_words(f: Family, operand: str, count: int, place: int, ctas: int) -> NDArray[np.uint64]:
    """Return the words `[CTA, register, thread]` of an operand."""
    shape = (ctas, count, _THREADS)
    first = np.arange(np.prod(shape), dtype=np.uint64).reshape(shape)
    stream = 8 * f.number + place
    if operand == "e":
        return metadata(f.types[1], first, stream).astype(np.uint64)
    type_ = {"a": f.types[1], "b": f.types[2]}.get(operand, f.types[3])
    parts = f.unit * 8 // WIDTHS[type_]
    index = first[..., None] * np.uint64(parts) + np.arange(parts, dtype=np.uint64)
    warp = np.arange(ctas)[:, None, None] * 4 + np.arange(_THREADS)[None, None] // 32
    if operand in ("c", "d"):
        regime = np.broadcast_to((warp // REGIMES + warp % 3) % SUMS, shape)
        return _packed(sums(type_, index, np.broadcast_to(regime[..., None], index.shape), stream), WIDTHS[type_], f.unit)
    low = np.arange(count)[None, :, None] % 2 if f.wgmma else np.zeros((1, 1, 1), np.intp)
    regime = np.broadcast_to((warp * (1 + f.wgmma) + low) % REGIMES, shape)
    elements = codes(type_, index, np.broadcast_to(regime[..., None], index.shape), stream)
    cancels = np.broadcast_to((warp // REGIMES % 2 == 1)[..., None], elements[:, : count // 2].shape)
    if count >= 2 and not f.wgmma and type_ != "b1":  # the second half of K repeats the first, with the other sign in A
        half = count // 2
        sign = np.uint64(1 << WIDTHS[type_] - 1) if operand == "a" else np.uint64(0)
        keep = elements[:, half : 2 * half]
        again = np.where(keep & np.uint64(7) == np.uint64(7), keep, elements[:, :half] ^ sign)
        elements[:, half : 2 * half] = np.where(cancels, again, keep)
    return _packed(elements, WIDTHS[type_], f.unit)


def _image_words(f: Family, ctas: int) -> NDArray[np.uint64]:
    """Return the words `[CTA, image / 4]`: groups of eight rows, each in a regime; K's second half may repeat the first."""
    out = np.zeros((ctas, f.image // 4), np.uint64)
    step = 512 if f.sparse else 256
    for operand, type_, start, stop, size in (("a", f.types[1], 0, _A_BYTES, 256), ("b", f.types[2], _A_BYTES, f.image, step)):
        groups = (stop - start) // size
        parts = 32 // WIDTHS[type_]
        shape = (ctas, groups, size // 4, parts)
        index = np.arange(np.prod(shape), dtype=np.uint64).reshape(shape)
        group = np.arange(ctas)[:, None] * 3 + np.arange(groups)[None] + (f.number % 5 if operand == "b" else 0)
        regime = np.broadcast_to((group % REGIMES)[..., None, None], shape)
        elements = codes(type_, index, regime, 8 * f.number + (6 if operand == "a" else 7))
        half = size // 8
        sign = np.uint64(1 << WIDTHS[type_] - 1) if operand == "a" and type_ != "b1" else np.uint64(0)
        again = elements[:, :, :half] ^ sign
        keep = elements[:, :, half:]
        cancels = np.broadcast_to((group // REGIMES % 2 == 1)[..., None, None], keep.shape) & (
            keep & np.uint64(7) != np.uint64(7)
        )
        elements[:, :, half:] = np.where(cancels, again, keep)
        out[:, start // 4 : stop // 4] = _packed(elements, WIDTHS[type_], 4).reshape(ctas, -1)
    return out


# --- the forms --------------------------------------------------------------------------------------------------------


def _executable(m: Match, arch: str) -> bool:
    target = parse_arch(arch)
    needs = all((n.arch is None or n.arch.allows(target)) and (n.ptx or (0, 0)) <= _VERSION for n in m.needs)
    return needs and not m.row.refused and not isinstance(registry.build(m), registry.Refused)


def _selectors(m: Match) -> tuple[int | None, ...]:
    slot = next((s for s in m.operands if s.name == "f"), None)
    if slot is None:
        return (None,)
    words = m.mnemonic.split(".")
    type_ = [w for w in words if w in WIDTHS][1]
    depth = int(re.findall(r"k(\d+)", m.mnemonic)[0])
    last = slot.range[1] if slot.range else max(slot.choices)
    return tuple(range(min(last + 1, 64 // Sparsity(type_, depth).bits)))


@cache
def families(arch: str) -> tuple[Family, ...]:
    """Return every form of `mma` and `wgmma.mma_async` that the architecture executes."""
    return tuple(_families(arch))


def _families(arch: str) -> Iterator[Family]:
    number = 0
    for row in (*rows("mma"), *rows("wgmma")):
        if row.opcode == "wgmma" and "mma_async" not in row.pattern:
            continue
        forms = [m for name in mnemonics(row) for m in match(name) if m.row is row and _executable(m, arch)]
        found = [(m, s) for m in forms for s in _selectors(m)]
        for m, selector in found:
            f = Family(number, m.mnemonic, row.id, selector, 1)
            results = _results(f)
            yield Family(number, m.mnemonic, row.id, selector, max(1, -(-OUTPUTS // (len(found) * results))))
            number += 1


def _results(f: Family) -> int:
    """Results of a CTA."""
    m, n, _ = f.size
    return m * n if f.wgmma else 4 * m * n * (4 if (m, f.size[2], f.types[1]) == (8, 4, "f16") else 1)
