"""Devices: what a launch may use, by architecture (CUDA programming guide, technical specifications per compute capability)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import final

from warpsmith.base.arch import parse_arch
from warpsmith.base.errors import InputError

__all__ = ["DEVICES", "DeviceModel", "device", "device_for"]


@final
@dataclass(frozen=True, slots=True)
class DeviceModel:
    """A GPU as the simulator needs it."""

    name: str
    arch: str
    multiprocessors: int
    shared_per_multiprocessor: int
    """Bytes of shared memory of a multiprocessor, what the system reserves per CTA included."""
    shared_per_block: int
    """Largest shared memory of a CTA (opt-in), static and dynamic together."""
    threads_per_multiprocessor: int = 2048
    blocks_per_multiprocessor: int = 32
    registers_per_multiprocessor: int = 65536
    threads_per_block: int = 1024
    reserved_shared_per_block: int = 1024
    cluster_size: int = 8
    """Largest portable cluster; 1 where there are none."""

    def resident(self, threads: int, shared: int) -> int:
        """Return how many CTAs of `threads` threads and `shared` bytes of shared memory run at once on the device."""
        warps = -(-threads // 32) * 32
        per = min(self.blocks_per_multiprocessor, self.threads_per_multiprocessor // warps)
        per = min(per, self.shared_per_multiprocessor // max(1, shared + self.reserved_shared_per_block))
        return max(1, per) * self.multiprocessors


_K = 1024
_ALL = (
    DeviceModel("V100", "sm_70", 80, 96 * _K, 96 * _K, reserved_shared_per_block=0, cluster_size=1),
    DeviceModel("T4", "sm_75", 40, 64 * _K, 64 * _K, 1024, 16, reserved_shared_per_block=0, cluster_size=1),
    DeviceModel("A100", "sm_80", 108, 164 * _K, 163 * _K, cluster_size=1),
    DeviceModel("RTX3090", "sm_86", 82, 100 * _K, 99 * _K, 1536, 16, cluster_size=1),
    DeviceModel("Orin", "sm_87", 16, 164 * _K, 163 * _K, 1536, 16, cluster_size=1),
    DeviceModel("RTX4090", "sm_89", 128, 100 * _K, 99 * _K, 1536, 24, cluster_size=1),
    DeviceModel("H100", "sm_90", 132, 228 * _K, 227 * _K),
    DeviceModel("H200", "sm_90", 132, 228 * _K, 227 * _K),
    DeviceModel("B200", "sm_100", 148, 228 * _K, 227 * _K),
    DeviceModel("B300", "sm_103", 160, 228 * _K, 227 * _K),
    DeviceModel("Thor", "sm_110", 20, 228 * _K, 227 * _K, 1536, 24),
    DeviceModel("RTX5090", "sm_120", 170, 100 * _K, 99 * _K, 1536, 24),
    DeviceModel("GB10", "sm_121", 48, 100 * _K, 99 * _K, 1536, 24),
)
DEVICES = {d.name: d for d in _ALL}


def device(name: str) -> DeviceModel:
    """Return the device called `name`, e.g. `H200`; raise `InputError` naming the known ones."""
    if not isinstance(name, str):
        raise InputError(f'{name!r} is no device; give a name such as "H200"')
    found = {n.lower(): d for n, d in DEVICES.items()}.get(name.lower())
    if found is None:
        raise InputError(f"unknown device {name!r}; known: {', '.join(DEVICES)}")
    return found


@cache
def device_for(arch: str) -> DeviceModel:
    """Return the device a module for `arch` runs on by default: of that architecture, else of the nearest older one."""
    number = parse_arch(arch).number
    same = [d for d in _ALL if parse_arch_number(d) == number]
    if same:
        return same[-1]
    older = [d for d in _ALL if parse_arch_number(d) <= number]
    return older[-1] if older else DEVICES["V100"]


def parse_arch_number(d: DeviceModel) -> int:
    """Return the number of a device's architecture, e.g. 90."""
    return int(d.arch.removeprefix("sm_"))
