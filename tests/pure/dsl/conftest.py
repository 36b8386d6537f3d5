"""Trace a body and show what it emits."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from warpsmith import kernel
from warpsmith.base.errors import KernelError


def lines_of(text: str) -> list[str]:
    """The statements of the body: no declarations, white space normalised."""
    body = text[text.index("\n{\n") + 3 : text.rindex("}")]
    lines = [re.sub(r"\s+", " ", line.strip()) for line in body.splitlines()]
    return [line for line in lines if line and not line.startswith((".reg", ".shared", ".loc"))]


@pytest.fixture
def emitted() -> Callable[..., list[str]]:
    """`emitted(body, **kernel_arguments)`: the statements a body emits."""

    def run(body, **arguments) -> list[str]:
        arguments.setdefault("block", (128, 1, 1))
        return lines_of(kernel(**arguments)(body).ptx(loc=False))

    return run


@pytest.fixture
def mistake() -> Callable[..., str]:
    """`mistake(body, **kernel_arguments)`: the message of the KernelError, with file and line numbers taken out."""

    def run(body, **arguments) -> str:
        arguments.setdefault("block", (128, 1, 1))
        with pytest.raises(KernelError) as caught:
            kernel(**arguments)(body).ptx()
        return re.sub(r"^\S*?(\w+\.py):\d+:\d+:", r"\1:", str(caught.value), flags=re.MULTILINE)

    return run
