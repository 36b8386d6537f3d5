"""Random programs of many threads: control flow, calls, memory, warps, barriers, clusters; none has a race or a hang."""
