"""`differentiable_kernel`: a kernel with another as its derivative, for torch's autograd and for JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from warpsmith.base.errors import InputError
from warpsmith.dsl import rooms
from warpsmith.dsl.operators_of_torch import is_compiling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["DifferentiableKernel", "differentiable_kernel"]


@final
class DifferentiableKernel:
    """What `differentiable_kernel` returns: call it as the forward kernel."""

    def __init__(
        self, forward: Callable[..., Any], backward: Callable[..., Any], save: tuple[int, ...] | None, count: int | None
    ) -> None:
        self.forward_kernel, self.backward_kernel = forward, backward
        self.save, self.count = save, count
        self.__name__ = getattr(forward, "__name__", "forward")
        self.__doc__ = forward.__doc__

    def gradients(self, found: Any, inputs: int) -> tuple[Any, ...]:
        """Return a gradient or None for each input, from what the backward kernel returned."""
        found = found if isinstance(found, tuple) else (found,)
        wanted = inputs if self.count is None else self.count
        if len(found) < wanted:
            raise InputError(
                f"differentiable_kernel: the backward kernel of {self.__name__} returns {len(found)} gradients for "
                f"{wanted} inputs; give num_grad_inputs={len(found)} if the others have none"
            )
        return (*found[:wanted], *[None] * (inputs - wanted))

    def __call__(self, *tensors: Any) -> Any:
        """Run the forward kernel; torch and JAX can differentiate the result."""
        if is_compiling():
            from warpsmith.launch import torch_op  # noqa: PLC0415  (torch.compile traces an import statement, but no import_module)

            return torch_op.differentiate(self, *tensors)
        arrays = rooms.arrays_of(tensors[0]) if tensors else None
        if arrays is None or not hasattr(arrays, "differentiate"):
            return self.forward_kernel(*tensors)
        return arrays.differentiate(self, tensors)


def differentiable_kernel(
    forward: Callable[..., Any], backward: Callable[..., Any], *, save_for_backward: Sequence[int] | None = None,
    num_grad_inputs: int | None = None,
) -> DifferentiableKernel:  # fmt: skip
    """Return `forward` as a function that torch's autograd and `jax.grad` can differentiate.

    `backward` is called with the saved tensors, then the gradients of the outputs, and returns the gradients of the first
    `num_grad_inputs` inputs (by default of all). `save_for_backward` are indices into the inputs followed by the outputs (an
    attention saves its output and LSE: `[0, 1, 2, 3, 4]`); by default the inputs are saved. Keywords of kernels are bound
    with `functools.partial`.
    """
    for what, fn in (("forward", forward), ("backward", backward)):
        if not callable(fn):
            raise InputError(
                f"differentiable_kernel: the {what} kernel is {fn!r}; give a kernel, or a function that calls some"
            )
    save = None if save_for_backward is None else tuple(save_for_backward)
    if save is not None and not all(isinstance(i, int) and i >= 0 for i in save):
        raise InputError(
            f"differentiable_kernel: save_for_backward={save_for_backward!r}: indices of inputs, then outputs, from 0"
        )
    return DifferentiableKernel(forward, backward, save, num_grad_inputs)
