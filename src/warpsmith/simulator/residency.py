"""How many CTAs are resident at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.simulator.registers import BANKS

if TYPE_CHECKING:
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.program import Program

__all__ = ["rows_for"]

REGISTER_BYTES = 384 << 20
"""Most memory the register banks of all resident CTAs take."""
SHARED_BYTES = 1 << 30
LOCAL_BYTES = 1 << 29
"""Most memory of shared and of local variables, their shadow not counted."""


def rows_for(machine: Machine, program: Program, shared: int, ctas: int) -> int:
    """Return the number of resident CTAs: what the device holds, the `ctas` to run need and this computer's memory allows.

    Whole clusters. The last bound can only matter to kernels that need every CTA of a large device to be resident at once.
    """
    m = machine
    n = m.cluster_size
    rows = min(ctas, m.device.resident(m.threads, shared))
    per_row = sum(BANKS[bank][1] * count for bank, count in program.slots.items()) * m.threads
    rows = min(rows, max(1, REGISTER_BYTES // max(1, per_row)))
    stride = 1 << max(6, (shared + 1024 + 31).bit_length())
    rows = min(rows, max(1, SHARED_BYTES // (2 * stride)))
    local = program.local_size + program.call_param_size
    rows = min(rows, max(1, LOCAL_BYTES // (2 * m.threads * max(64, local))))
    return max(n, rows // n * n)
