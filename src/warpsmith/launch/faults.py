"""What the driver's errors mean for the launch at hand: kernel, grid, resources, the likely cause; and after a fault, the
launches it may come from with the way to run each on the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.base.errors import LaunchError

if TYPE_CHECKING:
    from warpsmith.launch.context import Context
    from warpsmith.launch.plan import Plan

__all__ = ["explain_fault", "explain_refusal", "is_sticky", "synchronize"]

_STICKY = {
    214: "an uncorrectable memory error of the device",
    700: "an address outside every allocation was read or written",
    702: "the kernel ran longer than the system allows on this device",
    710: "a device-side assertion failed",
    714: "the hardware met an error in the kernel's stack",
    715: "the kernel executed an instruction that is not legal (setmaxnreg, a descriptor or an mbarrier used wrongly; or trap)",
    716: "an address was not a multiple of the size of its access",
    717: "an instruction was given an address of the wrong state space",
    718: "the program counter left the kernel",
    719: "the kernel failed: a bad shared-memory or cluster address, a trap, or an error in asynchronous work",
    721: "another process sharing the device ended it",
}
"""CUresult that leaves the context unusable (CUDA Driver API, 6.1, CUresult) -> what happened."""

_REGISTERS_OF_A_MULTIPROCESSOR = 65536


def is_sticky(code: int) -> bool:
    """Say whether the context is unusable after this error."""
    return code in _STICKY


def _resources(plan: Plan) -> str:
    f, s = plan.function, plan.shape
    try:
        shared = f"{f.static_shared:,} + {s.dynamic_shared:,} bytes of shared memory (static + dynamic)"
        text = f"{f.registers} registers a thread, {shared}"
        return text + (f", {f.local:,} bytes of local memory a thread" if f.local else "")
    except LaunchError:  # after a fault the driver answers nothing
        return f"{s.dynamic_shared:,} bytes of dynamic shared memory"


def _cause(plan: Plan, code: int) -> str:
    shape, f, c = plan.shape, plan.function, plan.context
    threads = shape.block[0] * shape.block[1] * shape.block[2]
    shared = f.static_shared + shape.dynamic_shared
    if code in (1, 701, 912) and shared > c.shared_limit():
        return f"{shared:,} bytes of shared memory; {c.name} gives a CTA {c.shared_limit():,}"
    if code in (1, 701) and threads > f.max_threads:
        return (
            f"a CTA of {threads} threads with {f.registers} registers each; the kernel was compiled for at most "
            f"{f.max_threads} threads. Use a smaller block, or fewer registers (.maxnreg, setmaxnreg)"
        )
    if code in (1, 9) and any(g % k for g, k in zip(shape.grid, shape.cluster, strict=True)):
        return f"the grid {shape.grid} is no multiple of the cluster {shape.cluster}; round the grid up"
    if code in (1, 9) and (shape.grid[1] > 65535 or shape.grid[2] > 65535):
        return "the grid's y and z are at most 65,535"
    return {
        1: "a shape or an attribute that the kernel's directives (.reqntid, .maxntid, .reqnctapercluster) forbid",
        9: "a grid or block dimension beyond the device's limits",
        201: "the calling thread has no CUDA context, or one of another device",
        209: "an image for another architecture",
        400: "a stream of another device or of another context; pass a stream of the tensors' device",
        701: f"{threads} threads × {f.registers} registers against {_REGISTERS_OF_A_MULTIPROCESSOR:,} of a multiprocessor",
        720: "a cooperative grid must be resident at once; use fewer CTAs (the multiprocessors times what fits on each)",
        912: f"a cluster of {shape.cluster} with so much shared memory fits no group of multiprocessors; make one smaller",
    }.get(code, "")


def explain_refusal(failure: LaunchError, plan: Plan) -> LaunchError:
    """Return the error of a launch that the driver refused."""
    lines = [
        f"{plan.function.name}: {failure}",
        f"  {plan.shape}, {_resources(plan)}, on {plan.context.name} (sm_{plan.context.capability})",
    ]
    if cause := _cause(plan, failure.code):
        lines.append(f"  likely cause: {cause}")
    return LaunchError("\n".join(lines), failure.code)


def explain_fault(failure: LaunchError, context: Context) -> LaunchError:
    """Return the error of a kernel that failed on the device; an error that is no fault is returned as it is.

    The context is marked broken: no launch can follow. A fault breaks the contexts of all devices of the process (two H200s,
    driver 580.159.04), and any call of any of them may be the first to tell.
    """
    if not is_sticky(failure.code):
        return failure
    if context.broken is not None:
        return LaunchError(
            f"the CUDA context of device {context.device} is broken by an earlier fault; start a new process. The fault was:\n"
            f"{context.broken}",
            failure.code,
        )
    plans = list(dict.fromkeys(reversed(context.recent)))
    several = len({plan.context.device for plan in plans} | {context.device}) > 1
    which = "one of the devices, as told by device" if several else "device"
    lines = [
        f"a kernel failed on {which} {context.device} ({context.name}): {failure}",
        f"  {_STICKY[failure.code]}",
        "  the device reports it late and does not say which kernel; the latest launches of this process, last first:",
    ]
    for plan in plans:
        lines.append(f"  - {plan.function.name}, {plan.shape}" + (f", on device {plan.context.device}" if several else ""))
        lines += [f"      {line}" for line in plan.describe(plan.values).splitlines()]
        lines += [f"      its inputs: {plan.dumped}"] if plan.dumped else []
    if not plans:
        lines.append("  - none was launched by warpsmith")
    unusable = "the contexts of all devices are" if several else "the context is"
    lines.append(f"  {unusable} unusable from now on; start a new process. Its inputs are kept with WARPSMITH_DUMP=folder")
    report = context.broken = LaunchError("\n".join(lines), failure.code)
    return report


def synchronize(context: Context) -> None:
    """Wait for a device; raise `LaunchError` that names the launches that may have failed and how to simulate them."""
    before = context.enter()
    try:
        context.driver.synchronize()
    except LaunchError as failure:
        raise explain_fault(failure, context) from None
    finally:
        if context.broken is None:
            context.leave(before)
