"""tests/data/cuda/objects.cu compiled by clang: the programs and judges of nvcc's, but for `stack_memory`.

clang 19 gives `alloca` an alignment of 0, which ptxas refuses as the simulator does.
"""

from __future__ import annotations

from dataclasses import replace

from programs import nvcc_objects

PROGRAMS = [replace(p, compiler="clang", archs=("sm_80", "sm_90")) for p in nvcc_objects.PROGRAMS if p.name != "stack_memory"]
