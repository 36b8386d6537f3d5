"""The special registers of PTX and their types (PTX ISA chapter 10)."""

from __future__ import annotations

__all__ = ["SPECIAL_REGISTERS"]

_VECTORS = ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
_WORDS = (
    "laneid", "warpid", "nwarpid", "smid", "nsmid", "clock", "clock_hi", "globaltimer_lo", "globaltimer_hi", "total_smem_size",
    "aggr_smem_size", "dynamic_smem_size", "cluster_ctarank", "cluster_nctarank", "lanemask_eq", "lanemask_le", "lanemask_lt",
    "lanemask_ge", "lanemask_gt",
)  # fmt: skip
_LONG = ("clock64", "globaltimer", "gridid", "current_graph_exec")
_RESERVED = ("begin", "end", "cap", "0", "1")

SPECIAL_REGISTERS: dict[str, str] = (
    {f"%{n}.{c}": "u32" for n in _VECTORS for c in "xyzw"}
    | {f"%{n}": "u32" for n in _WORDS}
    | {f"%{n}": "u64" for n in _LONG}
    | {f"%reserved_smem_offset_{n}": "b32" for n in _RESERVED}
    | {f"%envreg{i}": "b32" for i in range(32)}
    | {f"%pm{i}": "u32" for i in range(8)}
    | {f"%pm{i}_64": "u64" for i in range(8)}
    | {"%is_explicit_cluster": "pred"}
)
"""name as written → type name."""
