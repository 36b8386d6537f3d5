"""The machinery of the DSL: `@kernel`, tracing, registers, control flow, checks.

Its public names are reached through `warpsmith`, `warpsmith.ptx`, `warpsmith.reg` and `warpsmith.smem`.
"""
