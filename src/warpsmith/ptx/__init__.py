"""PTX instructions as Python calls. Every call emits its instructions where it stands, checked when it is made.

`ptx.inst.<chain>` spells any instruction; the other names are wrappers with arguments.
"""

from __future__ import annotations

from warpsmith.assembly.ptx.read import parse
from warpsmith.dsl.address import address as addr
from warpsmith.dsl.chain import inst
from warpsmith.dsl.control import bra, else_, expr, if_, kloop, label, loop, range_, ret, scope
from warpsmith.dsl.special import ctaid_x, ctaid_y, special, sreg
from warpsmith.dsl.transpile import to_python
from warpsmith.ptx import bar, cluster, cp, cvta, fence, mbarrier, mma, tcgen05, tma, warp, wgmma
from warpsmith.ptx import launch_control as clusterlaunchcontrol
from warpsmith.ptx.alu import add, and_, cvt, ld, mad, mov, mul, not_, or_, selp, setp, shl, shr, st, sub, xor_
from warpsmith.ptx.bar import NamedBarrier, named_barrier
from warpsmith.ptx.matrix import ldmatrix, stmatrix, stmatrix_x4_trans_f32_bf16
from warpsmith.ptx.parameters import global_ptrs, param
from warpsmith.ptx.pipe import pipe
from warpsmith.ptx.pipeline import PipelineState, pipeline
from warpsmith.ptx.printing import printf
from warpsmith.ptx.statements import declare, file_, loc, pragma, raw, var
from warpsmith.ptx.warpgroup import elect_sync, setmaxnreg, setmaxnreg_dec, setmaxnreg_inc

__all__ = [
    "NamedBarrier", "PipelineState", "add", "addr", "and_", "bar", "bra", "cluster", "clusterlaunchcontrol", "cp", "ctaid_x",
    "ctaid_y", "cvt", "cvta", "declare", "elect_sync", "else_", "expr", "fence", "file_", "global_ptrs", "if_", "inst",
    "kloop", "label", "ld", "ldmatrix", "loc", "loop", "mad", "mbarrier", "mma", "mov", "mul", "named_barrier", "not_", "or_",
    "param", "parse", "pipe", "pipeline", "pragma", "printf", "range_", "raw", "ret", "scope", "selp", "setmaxnreg",
    "setmaxnreg_dec", "setmaxnreg_inc", "setp", "shl", "shr", "special", "sreg", "st", "stmatrix",
    "stmatrix_x4_trans_f32_bf16", "sub", "tcgen05", "tma", "to_python", "var", "warp", "wgmma", "xor_",
]  # fmt: skip
