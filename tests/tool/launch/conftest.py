"""A recording driver in the place of the CUDA driver; tests of torch and JAX where the package is installed."""

from importlib.util import find_spec

from driver_fixture import driver

__all__ = ["driver"]

collect_ignore = [f"test_{name}.py" for name in ("torch", "jax") if find_spec(name) is None]
