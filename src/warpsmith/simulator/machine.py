"""The machine of one launch: memory, registers, barriers, what is in flight, and who is resident."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.asynchronous import AsyncQueue
from warpsmith.simulator.barrier import Barriers
from warpsmith.simulator.budget import RegisterBudget
from warpsmith.simulator.check.access import AccessCheck
from warpsmith.simulator.check.order import Order
from warpsmith.simulator.check.peers import PeerWatch
from warpsmith.simulator.check.races import RaceWatch
from warpsmith.simulator.cluster import ClusterBarrier
from warpsmith.simulator.cooperative import provide
from warpsmith.simulator.counters import Counters
from warpsmith.simulator.fidelity import Fidelity
from warpsmith.simulator.findings import FindingLog
from warpsmith.simulator.lanes import Lanes
from warpsmith.simulator.memory import SHARED_START, Allocation, GlobalMemory, RowMemory, Space
from warpsmith.simulator.program import Operation
from warpsmith.simulator.recorder import Recorder
from warpsmith.simulator.registers import Registers
from warpsmith.simulator.special import wall_time
from warpsmith.simulator.traffic import Traffic
from warpsmith.simulator.write_watch import current_watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from warpsmith.base.device import DeviceModel
    from warpsmith.simulator.launch_config import LaunchConfig
    from warpsmith.simulator.program import Program
    from warpsmith.simulator.registers import Rectangle
    from warpsmith.simulator.scope import Symbol

__all__ = ["Machine"]

DEVICE_HEAP = 256 << 20
"""Bytes that `malloc` of device code hands out; more gives a null pointer, as on a GPU (whose limit is 8 MiB unless set)."""
LOCAL_HEAP = 1024
"""Bytes of local memory per thread for `alloca`, where a program uses it."""
LOCAL_FRAMES = 16 << 10
"""Bytes of local memory per thread for the local variables of recursive functions, where a program has some: a GPU's stack has
1,024 bytes unless `cuCtxSetLimit` gives it more."""
_nothing = Operation("machine", lambda *_: None, (), ())


@final
class Machine:
    """Everything a meaning can see. Rows are resident CTAs; the CTAs of a cluster hold consecutive rows."""

    def __init__(self, device: DeviceModel, config: LaunchConfig, global_: GlobalMemory, const: Space) -> None:
        self.device = device
        self.config = config
        self.grid, self.block, self.cluster = config.grid, config.block, config.cluster
        self.explicit_cluster = config.explicit_cluster
        self.cluster_size = config.cluster[0] * config.cluster[1] * config.cluster[2]
        self.numerics = config.numerics
        """`exact` or `fast`."""
        self.checking = config.check
        self.dynamic_shared = config.dynamic_shared
        self.global_, self.const = global_, const
        self.asynchronous = AsyncQueue()
        self.counters = Counters()
        self.traffic = Traffic(self.counters.lines) if config.lines else None
        self.findings = FindingLog(config.schedule_text)
        self.fidelity = Fidelity()
        self.recorder = Recorder(self)
        self.check = AccessCheck(self)
        self.writers = current_watch()
        """Follows who writes a byte of global memory, where that is asked."""
        self.printed: list[str] = []
        """What the kernel's printf wrote, in the order of execution."""
        self.state: dict[str, Any] = {}
        """Of other rooms of the machine (mbarriers, commit groups, …), by their name."""
        self.memory_version = 0
        """Moves with every change of memory."""
        self.execution = 0
        """Blocks that cohorts have begun."""
        self.tracking_began = False
        """A load has just met undefined bytes for the first time; the engine changes to tracked code."""
        self.no_operation = _nothing
        self.start_time = wall_time()
        self.grid_serial = config.grid_serial
        self.threads_per_cta = config.block[0] * config.block[1] * config.block[2]
        self.threads = -(-self.threads_per_cta // 32) * 32
        """Threads per CTA, padded to whole warps."""
        self.reserved_shared = SHARED_START
        self.shared_bytes = 0
        self.instructions_run = 0
        self.heap_left = DEVICE_HEAP
        self.row_hooks: list[Callable[[int], None]] = []
        """Called with a row that a new CTA has been given, to clear what other rooms keep for it."""
        self.end_hooks: list[Callable[[int], None]] = []
        """Called with a row whose CTA has ended, to report what it left behind."""
        self.fence_hook: Callable[[Lanes, Any], None] | None = None
        """Called with the lanes and the match of every fence, by checks that follow proxies."""
        self.cancel: Callable[[], tuple[int, int, int] | None] | None = None
        """Takes a cluster that has not started out of the launch; returns the index of its first CTA, None for none left."""
        self.function_variables: dict[int, Symbol] = {}
        self._scratch: dict[tuple[Any, int, tuple[int, ...]], NDArray[Any]] = {}
        self._lanes: dict[Rectangle, Lanes] = {}

    def load(self, program: Program, rows: int, parameters: bytes) -> None:
        """Make room for `rows` resident CTAs of `program`."""
        self.program = program
        self.rows = rows
        self.shared_bytes = program.dynamic_start - SHARED_START + self.dynamic_shared
        self.shared = RowMemory("shared", rows, SHARED_START, self.shared_bytes, defined=not self.checking)
        self.shared.allocations = [Allocation(f"shared variable `{n}`", a, s) for n, a, s in program.shared_names]
        if self.dynamic_shared:
            self.shared.allocations.append(Allocation("dynamic shared memory", program.dynamic_start, self.dynamic_shared))
        heap = (LOCAL_HEAP if program.uses_alloca else 0) + (LOCAL_FRAMES if program.frames else 0)
        self.local = RowMemory("local", rows * self.threads, 0, program.local_size + heap, defined=not self.checking)
        self.local.allocations = [Allocation(f"local variable `{n}`", a, s) for n, a, s in program.local_names]
        self.call_params = RowMemory("param", rows * self.threads, 0, program.call_param_size, defined=True)
        self.params = _parameter_space(parameters)
        self.registers = Registers(program.slots, rows, self.threads)
        self.local_top = np.full((rows, self.threads), program.local_size, np.int64)
        """Per thread: where the next `alloca` goes, or the local variables of a recursive function."""
        self.stacks = bool(program.frames or program.uses_alloca)
        self.frames = np.zeros((program.frames, rows, self.threads), np.int64)
        """Per recursive function with local variables and thread: where those of its innermost call begin."""
        self.live = np.zeros((rows, self.threads), np.bool_)
        """Threads that have not ended."""
        self.row_cta = np.full(rows, -1, np.int64)
        """Linear CTA of the grid in each row; -1 for an empty one."""
        self.cluster_first = np.arange(rows, dtype=np.int64) // self.cluster_size * self.cluster_size
        """Row of the first CTA of each row's cluster."""
        self._number()
        self.barriers = Barriers(self)
        self.cluster_barrier = ClusterBarrier(self)
        self.register_budget = RegisterBudget(self)
        self.peers = PeerWatch.of(self, program)
        provide(self)
        self.races = RaceWatch.of(self, program)
        self.order = Order(self, self.races) if self.races is not None else None

    def _number(self) -> None:
        bx, by, _ = self.block
        t = np.arange(self.threads, dtype=np.uint32)
        self.tid = [t % bx, t // bx % by, t // (bx * by)]
        self.cta_numbers = {
            name: np.zeros((3, self.rows), np.uint32)
            for name in ("%ctaid", "%clusterid", "%cluster_ctaid", "%smid", "%cluster_ctarank")
        }

    def settle(self, rows: NDArray[np.int64], first_cta: int) -> None:
        """Give `rows` to the CTAs from `first_cta` on (linear within the grid, clusters in order): set their numbers."""
        cx, cy, _ = self.cluster
        cta = first_cta + np.arange(rows.size, dtype=np.int64)
        cluster, rank = np.divmod(cta, self.cluster_size)
        inner = (rank % cx, rank // cx % cy, rank // (cx * cy))
        outer = self.cluster_index(cluster)
        position = tuple(o * c + i for o, c, i in zip(outer, self.cluster, inner, strict=True))
        for axis in range(3):
            self.cta_numbers["%ctaid"][axis, rows] = position[axis]
            self.cta_numbers["%clusterid"][axis, rows] = outer[axis]
            self.cta_numbers["%cluster_ctaid"][axis, rows] = inner[axis]
        self.cta_numbers["%smid"][0, rows] = rows % self.device.multiprocessors
        self.cta_numbers["%cluster_ctarank"][0, rows] = rank
        self.row_cta[rows] = cta

    def cluster_index(self, cluster: Any) -> tuple[Any, Any, Any]:
        """Return the index of clusters (linear in the grid)."""
        nx, ny = self.grid[0] // self.cluster[0], self.grid[1] // self.cluster[1]
        return cluster % nx, cluster // nx % ny, cluster // (nx * ny)

    def cta_of(self, row: int) -> tuple[int, int, int]:
        """Return the index of the CTA in a row."""
        x, y, z = self.cta_numbers["%ctaid"][:, row].tolist()
        return x, y, z

    def lanes(self, rect: Rectangle) -> Lanes:
        """Return the lanes of a rectangle (one object per rectangle)."""
        found = self._lanes.get(rect)
        if found is None:
            if len(self._lanes) > 4096:
                self._lanes.clear()
            found = self._lanes[rect] = Lanes(self, rect)
        return found

    def scratch(self, dtype: Any, index: int, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return scratch memory; equal arguments give the same array."""
        key = (dtype, index, shape)
        found = self._scratch.get(key)
        if found is None:
            found = self._scratch[key] = np.empty(shape, dtype)
        return found

    def now(self) -> int:
        """Return the time in cycles: the instructions issued so far."""
        self.instructions_run += 16
        return self.instructions_run

    def progress(self) -> None:
        """Say that something changed which a waiting cohort may be looking at."""
        self.memory_version += 1


def _parameter_space(parameters: bytes) -> Space:
    size = 1 << max(7, (len(parameters) + 63).bit_length())
    space = Space("param", size)
    space.data[: len(parameters)] = np.frombuffer(parameters, np.uint8)
    space.shadow[len(parameters) : -32] = 8
    space.allocations = [Allocation("the kernel's parameters", 0, len(parameters))]
    return space
