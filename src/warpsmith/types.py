"""Every PTX type by name: `from warpsmith.types import bf16, f32, u32, pred`."""

from __future__ import annotations

from warpsmith.base.ptx_types import TYPES, PtxType, from_name

b8 = TYPES["b8"]
b16 = TYPES["b16"]
b32 = TYPES["b32"]
b64 = TYPES["b64"]
b128 = TYPES["b128"]
u8 = TYPES["u8"]
u16 = TYPES["u16"]
u32 = TYPES["u32"]
u64 = TYPES["u64"]
s8 = TYPES["s8"]
s16 = TYPES["s16"]
s32 = TYPES["s32"]
s64 = TYPES["s64"]
f16 = TYPES["f16"]
bf16 = TYPES["bf16"]
tf32 = TYPES["tf32"]
f32 = TYPES["f32"]
f64 = TYPES["f64"]
f16x2 = TYPES["f16x2"]
bf16x2 = TYPES["bf16x2"]
u16x2 = TYPES["u16x2"]
s16x2 = TYPES["s16x2"]
f32x2 = TYPES["f32x2"]
e4m3 = TYPES["e4m3"]
e5m2 = TYPES["e5m2"]
e2m3 = TYPES["e2m3"]
e3m2 = TYPES["e3m2"]
e2m1 = TYPES["e2m1"]
ue8m0 = TYPES["ue8m0"]
ue4m3 = TYPES["ue4m3"]
s4 = TYPES["s4"]
u4 = TYPES["u4"]
b1 = TYPES["b1"]
e4m3x2 = TYPES["e4m3x2"]
e5m2x2 = TYPES["e5m2x2"]
e2m3x2 = TYPES["e2m3x2"]
e3m2x2 = TYPES["e3m2x2"]
e2m1x2 = TYPES["e2m1x2"]
ue8m0x2 = TYPES["ue8m0x2"]
e4m3x4 = TYPES["e4m3x4"]
e5m2x4 = TYPES["e5m2x4"]
e2m3x4 = TYPES["e2m3x4"]
e3m2x4 = TYPES["e3m2x4"]
e2m1x4 = TYPES["e2m1x4"]
b4x16 = TYPES["b4x16"]
b4x16_p64 = TYPES["b4x16_p64"]
b6x16_p32 = TYPES["b6x16_p32"]
b6p2x16 = TYPES["b6p2x16"]
pred = TYPES["pred"]

__all__ = [
    "PtxType",
    "b1",
    "b4x16",
    "b4x16_p64",
    "b6p2x16",
    "b6x16_p32",
    "b8",
    "b16",
    "b32",
    "b64",
    "b128",
    "bf16",
    "bf16x2",
    "e2m1",
    "e2m1x2",
    "e2m1x4",
    "e2m3",
    "e2m3x2",
    "e2m3x4",
    "e3m2",
    "e3m2x2",
    "e3m2x4",
    "e4m3",
    "e4m3x2",
    "e4m3x4",
    "e5m2",
    "e5m2x2",
    "e5m2x4",
    "f16",
    "f16x2",
    "f32",
    "f32x2",
    "f64",
    "from_name",
    "pred",
    "s4",
    "s8",
    "s16",
    "s16x2",
    "s32",
    "s64",
    "tf32",
    "u4",
    "u8",
    "u16",
    "u16x2",
    "u32",
    "u64",
    "ue4m3",
    "ue8m0",
    "ue8m0x2",
]
