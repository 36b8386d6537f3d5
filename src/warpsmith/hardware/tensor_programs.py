"""Programs that show what tensor cores and tensor copies do: the same PTX and inputs for a GPU and for the simulator.

Inputs come from fixed seeds; every program writes its first argument. Results of products are raw accumulator registers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from warpsmith.hardware.tensor_interleaved import interleaved_programs
from warpsmith.hardware.tensor_program import TensorProgram, load_program, random_map, source, store_program
from warpsmith.hardware.tensor_spellings import spelled_programs
from warpsmith.simulator.matrix_descriptor import MatrixDescriptor, encode
from warpsmith.simulator.operand_values import WIDTH
from warpsmith.simulator.tensormap import TensorMap

__all__ = ["TensorProgram", "tensor_programs"]

Array = NDArray[Any]
IMAGE = 32768
"""Bytes of shared memory that wgmma programs fill."""


def _bits(type_: str, count: int, seed: int) -> Array:
    """Return `count` random elements as unsigned bits: normal numbers over a wide range of exponents, or any integer."""
    rng = np.random.default_rng(seed)
    if type_ in ("u8", "s8", "u4", "s4", "b1"):
        return rng.integers(0, 256, count, dtype=np.uint8)
    value = rng.standard_normal(count) * 2.0 ** rng.integers(-6, 7, count)
    dtype: Any = {
        "f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
        "tf32": np.float32, "f32": np.float32, "f64": np.float64,
    }[type_]  # fmt: skip
    held = value.astype(np.float32).astype(dtype) if type_ != "f64" else value
    return held.view(f"u{held.dtype.itemsize}")


# --- wgmma ------------------------------------------------------------------------------------------------------------


def _wgmma(
    name: str, shape: str, types: tuple[str, str, str], a: int | None, b: int, tail: str, repeats: int = 2
) -> TensorProgram:
    """One product `repeats` times into the same accumulators; `a` None takes A from registers."""
    n = int(shape[4:].partition("k")[0])
    count = n // 4 if types[0] == "f16" else n // 2
    d = ", ".join(f"%r{i}" for i in range(count))
    left = "{%r200, %r201, %r202, %r203}" if a is None else "%rd10"
    load = "".join(f" ld.global.b32 %r{200 + i}, [%rd6+{512 * i}];\n" for i in range(4))
    zero = "".join(f" mov.b32 %r{i}, 0;\n" for i in range(count))
    popc = ".and.popc" if types[1] == "b1" else ""
    product = f" wgmma.mma_async.sync.aligned.{shape}.{'.'.join(types)}{popc} {{{d}}}, {left}, %rd11, %p2{tail};\n"
    store = "".join(f" st.global.b32 [%out+{512 * i}], %r{i};\n" for i in range(count))
    body = f""" .shared .align 1024 .b8 buf[{IMAGE}];
 ld.param.u64 %rd1, [image]; ld.param.u64 %rd10, [da]; ld.param.u64 %rd11, [db]; ld.param.u64 %rd6, [fragment];
 mov.u32 %r250, buf; shr.u32 %r251, %r250, 4; cvt.u64.u32 %rd7, %r251; add.u64 %rd10, %rd10, %rd7; add.u64 %rd11, %rd11, %rd7;
 shl.b32 %r251, %t, 4; add.u32 %r252, %r250, %r251; cvt.u64.u32 %rd2, %r251; add.u64 %rd3, %rd1, %rd2; mov.u32 %r253, 0;
FILL:
 ld.global.v4.b32 {{%r254, %r255, %r256, %r257}}, [%rd3]; st.shared.v4.b32 [%r252], {{%r254, %r255, %r256, %r257}};
 add.u32 %r252, %r252, 2048; add.u64 %rd3, %rd3, 2048; add.u32 %r253, %r253, 1; setp.lt.u32 %p1, %r253, {IMAGE // 2048};
 @%p1 bra FILL;
 fence.proxy.async.shared::cta; bar.sync 0;
 mul.wide.u32 %rd4, %t, 4; add.u64 %out, %out, %rd4; add.u64 %rd6, %rd6, %rd4; setp.eq.u32 %p2, 0, 0;
{load}{zero} wgmma.fence.sync.aligned;
{product * repeats} wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
{store}"""

    def arguments() -> list[Any]:
        image = np.resize(_bits(types[1], IMAGE, 1), IMAGE // (WIDTH[types[1]] // 8 or 1)).view(np.uint8)
        if types[2] != types[1]:
            image[IMAGE // 2 :] = np.resize(_bits(types[2], IMAGE, 2).view(np.uint8), IMAGE // 2)
        fragment = np.resize(_bits(types[1], 4096, 3), 2048 // (WIDTH[types[1]] // 8 or 1)).view(np.uint32)
        return [np.zeros((count, 128), np.uint32), image.copy(), int(a or 0), int(b), fragment.copy()]

    parameters = ".param .u64 image, .param .u64 da, .param .u64 db, .param .u64 fragment"
    return TensorProgram(f"wgmma {name}", source(parameters, body), arguments)


def _wgmmas() -> Iterator[TensorProgram]:
    half = IMAGE // 2
    for swizzle, span in (("none", 16), ("32B", 32), ("64B", 64), ("128B", 128)):
        for ta in (0, 1):
            for tb in (0, 1):
                da, db = (
                    encode(MatrixDescriptor(start, 2176 if major else 128, 1152 if swizzle == "none" else 8 * span, swizzle))
                    for start, major in ((0, ta), (half, tb))
                )
                tail = f", 1, 1, {ta}, {tb}"
                yield _wgmma(f"{swizzle} {ta}{tb}", "m64n64k16", ("f32", "bf16", "bf16"), da, db, tail)
    for k, types, tail in (
        (16, ("f32", "f16", "f16"), ", -1, 1, 0, 0"),
        (16, ("f16", "f16", "f16"), ", 1, 1, 0, 0"),
        (8, ("f32", "tf32", "tf32"), ", 1, -1"),
        (32, ("f32", "e4m3", "e5m2"), ", 1, 1"),
        (32, ("f16", "e5m2", "e4m3"), ", 1, 1"),
        (32, ("f32", "e4m3", "e4m3"), ", -1, -1"),
        (32, ("s32", "s8", "u8"), ""),
        (256, ("s32", "b1", "b1"), ""),
    ):
        a, b = (encode(MatrixDescriptor(start, 0, 1024, "128B")) for start in (0, half))
        yield _wgmma(".".join(types), f"m64n32k{k}", types, a, b, tail)
        yield _wgmma(f"{'.'.join(types)} registers", f"m64n32k{k}", types, None, b, tail.removesuffix(", 0"))


# --- mma.sync ---------------------------------------------------------------------------------------------------------


def _mma(mnemonic: str, counts: tuple[int, int, int], types: tuple[str, str, str], wide: bool = False) -> TensorProgram:
    """A product of fragments in registers; `counts` of A, B, and C."""
    r, unit, move = ("%fd", 8, "f64") if wide else ("%r", 4, "b32")
    groups = [
        list(range(s, s + c))
        for s, c in zip(np.cumsum([0, counts[2], *counts[:2]]).tolist(), (counts[2], *counts), strict=True)
    ]
    first = counts[2]
    load = "".join(f" ld.global.{move} {r}{i}, [%rd2+{(i - first) * 32 * unit}];\n" for g in groups[1:] for i in g)
    text = ", ".join("{" + ", ".join(f"{r}{i}" for i in g) + "}" for g in groups)
    store = "".join(f" st.global.{move} [%out+{i * 32 * unit}], {r}{i};\n" for i in groups[0])
    body = f""" mul.wide.u32 %rd1, %t, {unit}; ld.param.u64 %rd2, [in]; add.u64 %rd2, %rd2, %rd1; add.u64 %out, %out, %rd1;
{load} mma.sync.aligned.{mnemonic} {text};
{store}"""

    def arguments() -> list[Any]:
        parts: list[Array] = []
        for k, (count, type_) in enumerate(zip(counts, types, strict=True)):
            size = WIDTH.get(type_, 32)
            bits = _bits("s8" if type_ == "s32" else type_, max(8, count * 32 * unit * 8 // max(size, 8)), 10 + k)
            parts.append(np.resize(bits.view(np.uint8), count * 32 * unit))
        data = np.concatenate(parts)
        return [np.zeros((counts[2], 32), f"u{unit}"), data]

    return TensorProgram(f"mma {mnemonic}", source(".param .u64 in", body), arguments, 32)


def _mmas() -> Iterator[TensorProgram]:
    for mnemonic, counts, types in (
        ("m16n8k8.row.col.f32.f16.f16.f32", (2, 1, 4), ("f16", "f16", "f32")),
        ("m16n8k16.row.col.f32.f16.f16.f32", (4, 2, 4), ("f16", "f16", "f32")),
        ("m16n8k16.row.col.f16.f16.f16.f16", (4, 2, 2), ("f16", "f16", "f16")),
        ("m16n8k16.row.col.f32.bf16.bf16.f32", (4, 2, 4), ("bf16", "bf16", "f32")),
        ("m16n8k4.row.col.f32.tf32.tf32.f32", (2, 1, 4), ("tf32", "tf32", "f32")),
        ("m16n8k8.row.col.f32.tf32.tf32.f32", (4, 2, 4), ("tf32", "tf32", "f32")),
        ("m16n8k32.row.col.f32.e4m3.e5m2.f32", (4, 2, 4), ("e4m3", "e5m2", "f32")),
        ("m16n8k16.row.col.s32.s8.u8.s32", (2, 1, 4), ("s8", "u8", "s32")),
        ("m16n8k32.row.col.satfinite.s32.s8.s8.s32", (4, 2, 4), ("s8", "s8", "s32")),
        ("m16n8k64.row.col.s32.s4.u4.s32", (4, 2, 4), ("s4", "u4", "s32")),
        ("m16n8k256.row.col.s32.b1.b1.s32.xor.popc", (4, 2, 4), ("b1", "b1", "s32")),
        ("m8n8k128.row.col.s32.b1.b1.s32.and.popc", (1, 1, 2), ("b1", "b1", "s32")),
    ):
        yield _mma(mnemonic, counts, types)
    for shape, counts in (("m8n8k4", (1, 1, 2)), ("m16n8k4", (2, 1, 4)), ("m16n8k8", (4, 2, 4)), ("m16n8k16", (8, 4, 4))):
        yield _mma(f"{shape}.row.col.f64.f64.f64.f64", counts, ("f64", "f64", "f64"), wide=True)


def _sparse() -> Iterator[TensorProgram]:
    """Sparse products with valid random metadata, by every selector."""
    for shape, types, counts, codes, selectors in (
        ("m16n8k16", "f32.f16.f16.f32", (2, 2, 4), (4, 8, 9, 12, 13, 14), (0, 1, 2, 3)),
        ("m16n8k32", "f32.f16.f16.f32", (4, 4, 4), (4, 8, 9, 12, 13, 14), (0, 1)),
        ("m16n8k8", "f32.tf32.tf32.f32", (2, 2, 4), (4, 14), (0, 1, 2, 3)),
        ("m16n8k16", "f32.tf32.tf32.f32", (4, 4, 4), (4, 14), (0, 1)),
        ("m16n8k32", "s32.s8.s8.s32", (2, 2, 4), (4, 8, 9, 12, 13, 14), (0, 1)),
        ("m16n8k64", "s32.s8.s8.s32", (4, 4, 4), (4, 8, 9, 12, 13, 14), (0,)),
        ("m16n8k64", "f32.e4m3.e4m3.f32", (4, 4, 4), (4, 8, 9, 12, 13, 14), (0,)),
        ("m16n8k64", "s32.s4.s4.s32", (2, 2, 4), (4, 8, 9, 12, 13, 14), (0, 1)),
        ("m16n8k128", "s32.s4.s4.s32", (4, 4, 4), (4, 8, 9, 12, 13, 14), (0,)),
    ):
        _, a, b, c = types.split(".")
        for f in selectors:
            dense = _mma(f"{shape}.row.col.{types}", counts, (a, b, c))
            at = sum(counts) * 128
            text = dense.text.replace(" mma.sync", f" ld.global.b32 %r99, [%rd2+{at}];\n mma.sp::ordered_metadata.sync")
            line = next(x for x in text.splitlines() if " mma.sp" in x)
            text = text.replace(line, line.replace(";", f", %r99, {f};"))

            def arguments(dense: TensorProgram = dense, codes: tuple[int, ...] = codes) -> list[Any]:
                out, data = dense.arguments()
                code = np.random.default_rng(31).choice(codes, (32, 8)).astype(np.uint32) << (4 * np.arange(8, dtype=np.uint32))
                return [out, np.concatenate([data, code.sum(1, dtype=np.uint32).view(np.uint8)])]

            yield TensorProgram(f"mma.sp {shape}.{types} f{f}", text, arguments, 32)


# --- tensor copies ----------------------------------------------------------------------------------------------------


def _load(
    name: str,
    made: Callable[[], TensorMap],
    at: list[int],
    size: int,
    mode: str = "tile",
    tail: str = "",
    sent: int | None = None,
) -> TensorProgram:
    copy = f"cp.async.bulk.tensor.{len(at)}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes"
    return load_program(name, made, at, size, copy, tail=tail, sent=sent)


def _loads() -> Iterator[TensorProgram]:
    for swizzle in ("none", "32B", "64B", "128B"):
        for inner in (8, 16, 32, 64):
            span = 2 * inner if swizzle == "none" else int(swizzle[:-1])
            if inner * 2 <= span:
                options = {"box": (16, inner), "swizzle": swizzle}
                tensor_map = random_map(np.uint16, (64, 128), **options)
                yield _load(f"{swizzle} inner {inner}", tensor_map, [24, 5], 16 * span, sent=32 * inner)
    for name, dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("f32", np.float32), ("f64", np.float64)):
        for fill in ("zero", "nan"):
            item = np.dtype(dtype).itemsize  # the first column must be a multiple of 16 bytes
            tensor_map = random_map(dtype, (32, 32), box=(8, 16), fill=fill)
            yield _load(f"{name} {fill} outside", tensor_map, [-16 // item, 28], 128 * item)
    for element in ("tf32", "f32_ftz", "tf32_ftz"):
        yield _load(element, random_map(np.float32, (32, 32), box=(8, 16), element=element), [4, 3], 512)
    for strides in ((3, 1), (2, 1), (8, 1), (3, 2)):
        options = {"box": (10, 16), "element_strides": strides}
        yield _load(f"strides {strides}", random_map(np.float32, (32, 32), **options), [0, 27], -(-10 // strides[0]) * 64)
    yield _load("3d", random_map(np.int32, (6, 7, 32), box=(2, 3, 8)), [4, 5, 5], 2 * 3 * 32)
    for offsets, at in (((0, 0), (-1, -1)), ((2, 1), (1, 0)), ((1, 2), (3, 4))):
        pixels = {"lower": (-1, -1), "upper": (-1, -1), "channels": 8, "pixels": 48}
        tail = f", {{{offsets[0]}, {offsets[1]}}}"
        start = [0, *at, 0]
        yield _load(f"im2col {offsets} {at}", random_map(np.float16, (2, 6, 5, 8), **pixels), start, 48 * 16, "im2col", tail)
        stepped = {**pixels, "element_strides": (1, 2, 2, 1)}
        yield _load(
            f"im2col strided {offsets} {at}", random_map(np.float16, (4, 6, 5, 8), **stepped), start, 48 * 16, "im2col", tail
        )


def _corners() -> Iterator[TensorProgram]:
    """Columns whose pixel box reaches beyond the far corner, or begins after the near one."""
    for lower, upper, at, offsets in (
        ((0, 0), (1, 1), (0, 0), (0, 0)), ((0, 0), (2, 1), (4, 5), (0, 0)), ((-1, -1), (1, 2), (-1, -1), (1, 2)),
        ((1, 2), (1, 0), (2, 1), (0, 1)), ((2, 1), (2, 3), (3, 3), (0, 0)), ((0, -2), (3, -1), (1, 2), (2, 0)),
    ):  # fmt: skip
        pixels = {"lower": lower, "upper": upper, "channels": 8, "pixels": 90}
        tail, start = f", {{{offsets[0]}, {offsets[1]}}}", [0, *at, 0]
        name = f"im2col corners {lower} {upper} {offsets} {at}"
        yield _load(name, random_map(np.float16, (3, 6, 5, 8), **pixels), start, 90 * 16, "im2col", tail)
        stepped = {**pixels, "element_strides": (1, 2, 3, 1), "pixels": 40}
        yield _load(f"{name} strided", random_map(np.float16, (5, 6, 5, 8), **stepped), start, 40 * 16, "im2col", tail)
    for lower, upper in (((0,), (3,)), ((2,), (1,))):
        made = random_map(np.uint16, (4, 7, 8), lower=lower, upper=upper, channels=8, pixels=35)
        yield _load(f"im2col corners {lower} {upper}", made, [0, lower[0], 0], 35 * 16, "im2col", ", {1}")
    made = random_map(np.uint16, (2, 3, 4, 5, 8), lower=(0, 1, -1), upper=(2, 1, 1), channels=8, pixels=200)
    yield _load("im2col corners of three", made, [0, 0, 1, 1, 0], 200 * 16, "im2col", ", {1, 0, 2}")


def _stores() -> Iterator[TensorProgram]:
    shape = {1: (64,), 2: (16, 32), 3: (4, 6, 32), 4: (3, 4, 5, 16), 5: (2, 3, 4, 5, 8)}
    for rank, dims in shape.items():
        box = tuple(max(1, d // 2) for d in dims)
        tensor_map = random_map(np.int32, dims, box=box)
        copy = f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"
        at = [4, *[1] * (rank - 1)]
        yield store_program(f"rank {rank}", tensor_map, at, 4 * int(np.prod(box)), copy)
    for op in ("add", "min", "max", "inc", "dec", "and", "or", "xor"):
        types: list[Any] = [np.uint32] if op in ("inc", "dec") else [np.uint32, np.int32, np.uint64]
        types += [np.float16, ml_dtypes.bfloat16, *([np.float32] if op == "add" else [])] if op in ("add", "min", "max") else []
        for dtype in types:
            size = 8 * 16 * np.dtype(dtype).itemsize
            copy = f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{op}.tile.bulk_group"
            tensor_map = random_map(dtype, (16, 32), box=(8, 16))
            yield store_program(
                f"{op} {np.dtype(dtype).name}", tensor_map, [8, 4], size, copy, narrow=np.dtype(dtype).kind not in "iu"
            )
    for swizzle in ("32B", "64B", "128B"):
        tensor_map = random_map(np.uint16, (32, 128), box=(8, int(swizzle[:-1]) // 2), swizzle=swizzle)
        copy = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
        yield store_program(f"swizzle {swizzle}", tensor_map, [8, 28], 8 * int(swizzle[:-1]), copy)
        small = random_map(np.uint16, (32, 128), box=(8, 8), swizzle=swizzle)
        yield store_program(f"narrow {swizzle}", small, [120, 3], 8 * int(swizzle[:-1]), copy)
    pixels = {"lower": (-1, -1), "upper": (-1, -1), "channels": 8, "pixels": 32}
    copy = "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group"
    yield store_program("im2col", random_map(np.float16, (2, 6, 5, 8), **pixels), [0, 1, 0, 0], 32 * 16, copy)


def _edges() -> Iterator[TensorProgram]:
    """Stores and reductions before and past the edges of a tensor."""
    tile = "global.shared::cta.tile.bulk_group"
    for what, head in (("store", "cp.async.bulk.tensor"), ("add", "cp.reduce.async.bulk.tensor")):
        copy = f"{head}.{{}}d.{tile}" if what == "store" else f"{head}.{{}}d.{tile.replace('tile', 'add.tile')}"
        for at in (  # the box has 16 by 8 words: rows and columns before the tensor, around its corner, past its end
            (-4, 0), (-12, 4), (-16, 0), (-20, 0), (0, -1), (4, -7), (0, -8), (0, -9), (-4, -1), (-16, -8),
            (-4, 12), (24, -1), (24, 0), (0, 12), (24, 12), (32, 0), (0, 16), (36, 20),
        ):  # fmt: skip
            yield store_program(f"edge {what} {at}", random_map(np.int32, (16, 32), box=(8, 16)), list(at), 512, copy.format(2))
        for at in ((-4,), (-32,), (48,)):
            yield store_program(f"edge {what} {at}", random_map(np.int32, (64,), box=(32,)), list(at), 128, copy.format(1))
        for at in ((0, 0, 0, -1), (0, 0, -1, 0), (8, 4, 3, 2)):
            yield store_program(
                f"edge {what} {at}", random_map(np.int32, (3, 4, 5, 16), box=(1, 2, 2, 8)), list(at), 128, copy.format(4)
            )
        pixels = {"lower": (0, 0), "upper": (0, 0), "channels": 8, "pixels": 32}
        columns = copy.format(4).replace("tile", "im2col_no_offs")
        for lower, upper, count in (((-1, -1), (-1, -1), 3), ((-1, 0), (0, 0), 4), ((0, -1), (0, 0), 6), ((0, 0), (1, 1), 32)):
            box = {"lower": lower, "upper": upper, "channels": 8, "pixels": count}
            made = random_map(np.float16, (2, 6, 5, 8), **box)
            yield store_program(f"edge im2col {what} {count} of {lower} {upper}", made, [0, 1, 1, 0], count * 16, columns)
        for at in ((0, 0, 0, 0), (0, -1, 0, 0), (0, 0, -1, 0), (0, 0, 0, -1), (0, 4, 5, 1)):
            yield store_program(
                f"edge im2col {what} {at}", random_map(np.float16, (2, 6, 5, 8), **pixels), list(at), 32 * 16, columns
            )


@cache
def tensor_programs() -> list[TensorProgram]:
    """Return every program."""
    first = [*_wgmmas(), *_mmas(), *_sparse(), *_loads(), *_corners(), *_stores(), *_edges(), *interleaved_programs()]
    known = {word for p in first for word in re.findall(r"cp\.[\w.:]+", p.text)}
    return [*first, *spelled_programs(known)]
