"""A recording driver in the place of the CUDA driver."""

from driver_fixture import driver

__all__ = ["driver"]
