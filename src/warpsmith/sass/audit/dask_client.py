"""Dask, where it is installed: a client's workers share an audit."""

# The package is optional, and its types with it.
# pyright: reportMissingImports=false, reportUnknownParameterType=false

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import distributed

from warpsmith.base.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["connect"]


@contextmanager
def connect(address: str, timeout: float = 20) -> Generator[Any]:
    """Give a client of the scheduler at an address such as `tcp://host:8786`; raise `InputError` where none answers."""
    try:
        client = distributed.Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        yield client
