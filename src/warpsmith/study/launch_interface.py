"""Launch paths with arrays that only speak `__cuda_array_interface__` or DLPack."""

# The package is optional, and its types with it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

from typing import Any, final

import torch

from warpsmith.study.launch_kernels import scaled_add

__all__ = ["CHECKS"]


@final
class _Interface:
    def __init__(self, tensor: torch.Tensor, stream: int | None) -> None:
        self._tensor, self._stream = tensor, stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self._tensor.__cuda_array_interface__, "version": 3, "stream": self._stream}


@final
class _Capsule:
    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        return self._tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> Any:
        return self._tensor.__dlpack_device__()


def _check(wrap: Any, stream: torch.cuda.Stream) -> None:
    with torch.cuda.stream(stream):
        a = torch.zeros(1 << 20, device="cuda")
        torch.cuda._sleep(20_000_000)
        a.fill_(3.0)
        b, c = torch.ones_like(a), torch.zeros_like(a)
    scaled_add(wrap(a), wrap(b), wrap(c), s=2.0)
    torch.cuda.synchronize()
    assert bool((c == 7).all())


def interface() -> None:
    """__cuda_array_interface__: the stream it names is launched in."""
    side = torch.cuda.Stream()
    _check(lambda t: _Interface(t, side.cuda_stream), side)


def dlpack() -> None:
    """DLPack on the default stream."""
    _check(_Capsule, torch.cuda.default_stream())


CHECKS = [interface, dlpack]
