"""`warpsmith.kernel`: the decorator under which kernels written elsewhere also look for the types of tensor parameters.

    from warpsmith import kernel                     # the decorator
    from warpsmith.kernel import TensorSpec          # a type beside it
    kernel.TensorSpec                                # the same type

One name cannot be a function and a module, so importing this module puts the function in its place: whichever of the lines
above runs first, `warpsmith.kernel` is the decorator, and the names below are its attributes.
"""

from __future__ import annotations

import sys

from warpsmith.dsl.kernel import Kernel, kernel
from warpsmith.dsl.tensor import TensorSpec, TmaDescriptorHandle

__all__ = ["Kernel", "TensorSpec", "TmaDescriptorHandle", "kernel"]

vars(kernel).update({name: globals()[name] for name in __all__})
sys.modules[__name__] = kernel  # type: ignore[assignment]
