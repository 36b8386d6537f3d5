"""A GPU in numpy: memory, warps, barriers and asynchronous operations, driven by an executor for PTX."""

from warpsmith.simulator.api import SimulationResult, ptr, simulate
from warpsmith.simulator.device import Device
from warpsmith.simulator.tensormap import TensorMap

__all__ = ["Device", "SimulationResult", "TensorMap", "ptr", "simulate"]
