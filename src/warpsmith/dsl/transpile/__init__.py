"""PTX → Python source of the DSL that traces to the same machine code.

`module` writes kernels, `statements` bodies, `operands` operands, `names` finds Python names, `sugar` the nicer spellings.
What the DSL has no call for (calls, vector registers, initialised variables, …) is kept as `ptx.raw` or `ptx.declare` text.
"""

from warpsmith.dsl.transpile.module import to_python

__all__ = ["to_python"]
