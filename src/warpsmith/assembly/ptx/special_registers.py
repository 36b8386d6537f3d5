"""The special registers (PTX ISA 10): name, type, first PTX version, architectures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import final

from warpsmith.base.arch import Requirement, parse_requirement
from warpsmith.base.ptx_types import TYPES, PtxType

__all__ = ["SPECIAL_REGISTERS", "SpecialRegister", "special_register"]

_TABLE = """
# name                                        type   ptx   arch     section
%tid %ntid %ctaid %nctaid                     v4u32  1.0   sm_10+   10.1-10.7
%laneid %warpid %nwarpid                      u32    1.3   sm_10+   10.2-10.5
%smid %nsmid                                  u32    1.3   sm_10+   10.8, 10.9
%gridid                                       u64    1.0   sm_10+   10.10
%is_explicit_cluster                          pred   7.8   sm_90+   10.11
%clusterid %nclusterid                        v4u32  7.8   sm_90+   10.12, 10.13
%cluster_ctaid %cluster_nctaid                v4u32  7.8   sm_90+   10.14, 10.15
%cluster_ctarank %cluster_nctarank            u32    7.8   sm_90+   10.16, 10.17
%lanemask_eq %lanemask_le %lanemask_lt        u32    2.0   sm_20+   10.18-10.20
%lanemask_ge %lanemask_gt                     u32    2.0   sm_20+   10.21, 10.22
%clock                                        u32    1.0   sm_10+   10.23
%clock_hi                                     u32    5.0   sm_20+   10.24
%clock64                                      u64    2.0   sm_20+   10.25
%pm0..7                                       u32    1.3   sm_10+   10.26
%pm0_64 %pm1_64 %pm2_64 %pm3_64               u64    4.0   sm_50+   10.27
%pm4_64 %pm5_64 %pm6_64 %pm7_64               u64    4.0   sm_50+   10.27
%envreg0..31                                  b32    2.1   sm_10+   10.28
%globaltimer                                  u64    3.1   sm_30+   10.29
%globaltimer_lo %globaltimer_hi               u32    3.1   sm_30+   10.29
%reserved_smem_offset_begin                   u32    7.6   sm_80+   10.30
%reserved_smem_offset_end                     u32    7.6   sm_80+   10.30
%reserved_smem_offset_cap                     u32    7.6   sm_80+   10.30
%reserved_smem_offset_0..1                    u32    7.6   sm_80+   10.30
%total_smem_size                              u32    4.1   sm_20+   10.31
%aggr_smem_size                               u32    8.1   sm_90+   10.32
%dynamic_smem_size                            u32    4.1   sm_20+   10.33
%locality_domain_id                           u32    9.5   sm_100+  9.5, ptxas
%locality_domain_supplemental_sm              u32    9.5   sm_100+  9.5, ptxas
%current_graph_exec                           u64    8.0   sm_50+   10.34
"""


@final
@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """A row of the table; `vector` is 4 for `%tid` and its like, whose elements are u32."""

    name: str
    type: PtxType
    vector: int
    ptx: tuple[int, int]
    arch: Requirement
    section: str


def _read() -> dict[str, SpecialRegister]:
    out: dict[str, SpecialRegister] = {}
    for line in _TABLE.strip().splitlines():
        if line.startswith("#"):
            continue
        names, kind, version, arch, section = re.split(r"\s{2,}", line)
        vector, kind = (4, kind[2:]) if kind.startswith("v4") else (1, kind)
        major, minor = version.split(".")
        for name in names.split():
            m = re.fullmatch(r"(.*?)(\d+)\.\.(\d+)", name)
            every = [f"{m[1]}{k}" for k in range(int(m[2]), int(m[3]) + 1)] if m else [name]
            for one in every:
                version_pair = (int(major), int(minor))
                out[one] = SpecialRegister(one, TYPES[kind], vector, version_pair, parse_requirement(arch), section)
    return out


SPECIAL_REGISTERS = _read()


@cache
def special_register(name: str) -> SpecialRegister | None:
    """Return the special register called `name`, or the element that `%tid.x` names; None for any other name."""
    found = SPECIAL_REGISTERS.get(name)
    if found is not None:
        return found
    root, dot, member = name.partition(".")
    whole = SPECIAL_REGISTERS.get(root)
    if not dot or whole is None or whole.vector == 1 or member not in ("x", "y", "z", "w", "r", "g", "b", "a"):
        return None
    return SpecialRegister(name, whole.type, 1, whole.ptx, whole.arch, whole.section)
