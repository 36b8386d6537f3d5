"""Wrong code of ptxas, told from the PTX (docs/findings/ptxas-miscompiles.md)."""

from warpsmith.assembly.ptx.miscompiled.at_hand import miscompiled_here
from warpsmith.assembly.ptx.miscompiled.judge import miscompiled
from warpsmith.assembly.ptx.miscompiled.table import table

__all__ = ["miscompiled", "miscompiled_here", "table"]
