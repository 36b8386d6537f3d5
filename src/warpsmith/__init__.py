"""Write, run, read and rewrite GPU machine code from Python.

Everything is imported lazily: `import warpsmith` costs milliseconds and needs no numpy.
"""

from __future__ import annotations

__version__ = "0.1.0"
