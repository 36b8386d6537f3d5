"""What must hold when the body has returned: loops and scopes closed, every branch has its label."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.base.place import place_error

if TYPE_CHECKING:
    from warpsmith.dsl.trace import Trace

__all__ = ["check_finished"]


def check_finished(trace: Trace) -> None:
    """Raise `KernelError` for what the body left open."""
    if trace.scope is not trace.root:
        raise place_error(
            trace.scope.place,
            "unbalanced scope: this ptx.scope() is still open at the end of the kernel",
            "open it with `with ptx.scope():`",
        )
    if trace.open_loops:
        raise place_error(
            trace.open_loops[-1][1],
            "the ptx.range_ loop was left by `break` or `return`, so its end is missing",
            "leave a run-time loop with ptx.bra to a label behind it",
        )
    if (missed := trace.missed()) is not None:
        form, place = missed
        raise place_error(place, "this block is never entered, so it does nothing", f"write `{form}`")
    for target, scope, place in trace.branches:
        if not scope.has_label(target):
            raise place_error(place, f"no label {target} in this kernel", f'set it with ptx.label("{target}")')
