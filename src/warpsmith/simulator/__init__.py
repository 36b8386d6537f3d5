"""A GPU in numpy: memory, warps, barriers and asynchronous operations, driven by an executor for PTX."""

from warpsmith.simulator.api import SimulationResult, ptr, simulate
from warpsmith.simulator.debugger import Debugger
from warpsmith.simulator.device import Device
from warpsmith.simulator.tensormap import TensorMap
from warpsmith.simulator.watch import Watch

__all__ = ["Debugger", "Device", "SimulationResult", "TensorMap", "Watch", "ptr", "simulate"]
