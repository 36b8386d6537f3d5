"""Tensor memory to registers and back, from shared memory, and shifts inside it (PTX ISA 9.7.18.8, 9.7.18.9)."""

from __future__ import annotations

from collections.abc import Iterable

from warpsmith.base.place import error
from warpsmith.base.ptx_types import PtxType
from warpsmith.dsl.registers import Reg, RegArray
from warpsmith.dsl.trace import current
from warpsmith.ptx.tcgen05.arguments import Pred, group_word, tensor_memory

__all__ = ["cp", "ld", "shift", "st", "wait_ld", "wait_st"]

_PER_REPETITION = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""Shape -> registers of a thread for each repetition."""
_MOST = {"16x128b": 64, "16x256b": 32}
_COPIES = {"128x256b": (), "4x256b": (), "128x128b": (), "64x128b": ("02_13", "01_23"), "32x128b": ()}
"""Size of a copy -> its ways to multicast; 32x128b always goes to all four warps."""
Registers = Reg | RegArray | Iterable[Reg]


def _vector(call: str, registers: Registers, shape: str, count: int | None) -> tuple[list[Reg], int]:
    """Return the registers and the repetitions; refuse what do not fit each other."""
    if shape not in _PER_REPETITION:
        raise error(f"{call}: shape is one of {', '.join(_PER_REPETITION)}, not {shape!r}")
    vector = [registers] if isinstance(registers, Reg) else list(registers)
    each, most = _PER_REPETITION[shape], _MOST.get(shape, 128)
    repetitions = len(vector) // each if count is None else count
    if not isinstance(repetitions, int) or repetitions not in (1, 2, 4, 8, 16, 32, 64, 128) or repetitions > most:
        raise error(f"{call}: count of {shape} is a power of two from 1 to {most}, not {repetitions!r}")
    if len(vector) != each * repetitions:
        raise error(
            f"{call}: {shape} with count {repetitions} moves {each * repetitions} registers, and {len(vector)} are given"
        )
    for r in vector:
        if not isinstance(r, Reg) or r.dtype.bits != 32:
            shown = f"{r.name} is {r.dtype}" if isinstance(r, Reg) else f"{type(r).__name__} is none"
            raise error(f"{call} moves registers of 32 bits, and {shown}")
    return vector, repetitions


def _split(call: str, shape: str, split: int | None) -> tuple[int, ...]:
    if (split is None) == (shape == "16x32bx2"):
        wanted = "needs split, the columns between its halves" if split is None else f"has no split; {shape} moves one piece"
        raise error(f"{call}: {shape} {wanted}")
    if split is None:
        return ()
    if isinstance(split, bool) or not isinstance(split, int) or split < 0:
        raise error(f"{call}: split is a number of columns, not {split!r}")
    return (split,)


def ld(
    dst: Registers, taddr: object, *, shape: str = "32x32b", count: int | None = None, dtype: str | PtxType = "b32",
    pack: bool = False, split: int | None = None, reduce: str | None = None, reduced: Reg | None = None, abs: bool = False,
    nan: bool = False, pred: Pred = None,
) -> None:  # fmt: skip
    """Load from tensor memory, the whole warp; the registers hold the values after `wait_ld`.

    `32x32b`: lane t gets `count` columns of its lane of tensor memory. `pack` puts the low halves of two columns into a
    register. `split`: columns between the halves of `16x32bx2`. `reduce` ("min", "max") also leaves each lane's smallest or
    largest in `reduced`; `dtype` is then f32, u32 or s32, `abs` compares magnitudes and `nan` lets NaN win.
    """
    vector, repetitions = _vector("tcgen05.ld", dst, shape, count)
    halves = _split("tcgen05.ld", shape, split)
    form = f"sync.aligned.{shape}.x{repetitions}"
    name = str(dtype)
    where = tensor_memory("taddr", taddr)
    if reduce is None:
        if name != "b32" or reduced is not None or abs or nan:
            wrong = f"dtype={name}" if name != "b32" else "reduced" if reduced is not None else "abs" if abs else "nan"
            raise error(f"tcgen05.ld: {wrong} has no effect without reduce", 'write reduce="min" or reduce="max"')
        words = f"tcgen05.ld.{form}{'.pack::16b' if pack else ''}.b32"
        current().emit(words, (vector, where, *halves), pred)
        return
    if reduce not in ("min", "max"):
        raise error(f'tcgen05.ld: reduce is "min" or "max", not {reduce!r}')
    if pack:
        raise error("tcgen05.ld with reduce moves whole 32-bit columns: pack is False")
    if reduced is None:
        raise error("tcgen05.ld: reduce needs a register for its result", "give reduced=reg.scalar(b32)")
    if name not in ("f32", "u32", "s32") or ((abs or nan) and name != "f32"):
        raise error(
            f"tcgen05.ld: reduce compares f32 (with abs and nan), u32 or s32, not {name}{' with abs or nan' * (abs or nan)}"
        )
    words = f"tcgen05.ld.red.{form}.{reduce}{'.abs' * bool(abs)}{'.NaN' * bool(nan)}.{name}"
    current().emit(words, (vector, reduced, where, *halves), pred)


def st(
    taddr: object, src: Registers, *, shape: str = "32x32b", count: int | None = None, dtype: str | PtxType = "b32",
    unpack: bool = False, split: int | None = None, pred: Pred = None,
) -> None:  # fmt: skip
    """Store to tensor memory, the whole warp: the mirror image of `ld`. `unpack` spreads halves over two columns."""
    vector, repetitions = _vector("tcgen05.st", src, shape, count)
    halves = _split("tcgen05.st", shape, split)
    if str(dtype) != "b32":
        raise error(f"tcgen05.st: dtype is b32, not {dtype}", "registers of any 32-bit type are stored bit by bit")
    words = f"tcgen05.st.sync.aligned.{shape}.x{repetitions}{'.unpack::16b' if unpack else ''}.b32"
    current().emit(words, (tensor_memory("taddr", taddr), *halves, vector), pred)


def cp(
    taddr: object, src: Reg, *, cta_group: int = 1, size: str = "128x256b", multicast: str | None = None,
    decompress: str | None = None, pred: Pred = None,
) -> None:  # fmt: skip
    """Copy from shared memory, behind the descriptor `src`, to tensor memory; `commit` reports it.

    `size` is 128x256b, 4x256b, 128x128b, 64x128b (`multicast` "02_13" or "01_23": the warps that get the same) or 32x128b (to
    all four warps). `decompress` widens to 8 bits: "b6x16_p32" or "b4x16_p64".
    """
    if size not in _COPIES:
        raise error(f"tcgen05.cp: size is one of {', '.join(_COPIES)}, not {size!r}")
    ways = _COPIES[size]
    if multicast not in (ways or (None,)):
        wanted = f"multicast={' or '.join(map(repr, ways))}" if ways else "no multicast"
        raise error(f"tcgen05.cp of {size} takes {wanted}, not {multicast!r}")
    if decompress not in (None, "b6x16_p32", "b4x16_p64"):
        raise error(f"tcgen05.cp: decompress is 'b6x16_p32' or 'b4x16_p64', not {decompress!r}")
    words = f"tcgen05.cp.{group_word(cta_group)}.{size}"
    words += f".warpx2::{multicast}" if multicast else ".warpx4" if size == "32x128b" else ""
    words += f".b8x16.{decompress}" if decompress else ""
    current().emit(words, (tensor_memory("taddr", taddr), src), pred)


def shift(taddr: object, *, cta_group: int = 1, pred: Pred = None) -> None:
    """Shift 32 bytes of each lane from `taddr` on down by one lane."""
    current().emit(f"tcgen05.shift.{group_word(cta_group)}.down", (tensor_memory("taddr", taddr),), pred)


def wait_ld(*, pred: Pred = None) -> None:
    """Wait until this thread's earlier `ld` are complete: only then do their registers hold values."""
    current().emit("tcgen05.wait::ld.sync.aligned", (), pred)


def wait_st(*, pred: Pred = None) -> None:
    """Wait until this thread's earlier `st` are complete."""
    current().emit("tcgen05.wait::st.sync.aligned", (), pred)
