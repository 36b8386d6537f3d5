"""A GPU in numpy: memory, warps, barriers and asynchronous operations, driven by an executor for PTX."""
