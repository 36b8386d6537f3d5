"""Attention forward of other libraries, each as a function of one set of inputs; what is absent says why."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["E4M3_PEERS", "PACKED_PEERS", "PEERS", "Launch", "Peer"]

Launch = Callable[[], None]
Peer = Callable[..., "tuple[Launch, Any]"]
"""(q, k, v of [batch, heads, sequence, dim], with e4m3 their factors [batch, heads]; causal=) → (what runs it, a function that
returns its output in that layout)."""


def _scaled_dot_product(backend: str) -> Peer:
    def make(q: Any, k: Any, v: Any, *, causal: bool) -> tuple[Launch, Any]:
        torch: Any = import_module("torch")
        attention: Any = import_module("torch.nn.attention")
        kept: list[Any] = [None]

        def run() -> None:
            with attention.sdpa_kernel(getattr(attention.SDPBackend, backend)):
                kept[0] = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

        return run, lambda: kept[0]

    return make


def _flash_attention_3(q: Any, k: Any, v: Any, *factors: Any, causal: bool) -> tuple[Launch, Any]:
    forward: Any = import_module("fa3_fwd_interface").flash_attn_func
    given = dict(zip(("q_descale", "k_descale", "v_descale"), factors, strict=False))
    # its layout is [batch, sequence, heads, dim]
    q, k, v = (t.transpose(1, 2).contiguous() for t in (q, k, v))
    kept: list[Any] = [None]

    def run() -> None:
        out = forward(q, k, v, causal=causal, **given)
        kept[0] = out[0] if isinstance(out, tuple) else out

    return run, lambda: kept[0].transpose(1, 2)


def _packed_flash_attention_3(q: Any, k: Any, v: Any, *, causal: bool) -> tuple[Launch, Any]:
    torch: Any = import_module("torch")
    forward: Any = import_module("fa3_fwd_interface").flash_attn_varlen_func
    batch, heads, sequence, _ = q.shape
    # its layout is [tokens, heads, dim]
    q, k, v = (t.transpose(1, 2).flatten(0, 1).contiguous() for t in (q, k, v))
    starts = torch.arange(0, (batch + 1) * sequence, sequence, dtype=torch.int32, device=q.device)
    kept: list[Any] = [None]

    def run() -> None:
        out = forward(q, k, v, starts, starts, sequence, sequence, causal=causal)
        kept[0] = out[0] if isinstance(out, tuple) else out

    return run, lambda: kept[0].view(batch, sequence, heads, -1).transpose(1, 2)


PEERS: dict[str, tuple[str, Peer]] = {
    "FA2": ("f16", _scaled_dot_product("FLASH_ATTENTION")),
    "cuDNN": ("f16", _scaled_dot_product("CUDNN_ATTENTION")),
    "cuDNN bf16": ("bf16", _scaled_dot_product("CUDNN_ATTENTION")),
    "FA3 bf16": ("bf16", _flash_attention_3),
}
"""Name → (dtype of its inputs, how to make a launch)."""
PACKED_PEERS: dict[str, tuple[str, Peer]] = {"FA3 bf16 packed": ("bf16", _packed_flash_attention_3)}
"""The same for sequences one behind the other in one tensor, made from the same batch."""
E4M3_PEERS: dict[str, tuple[str, Peer]] = {
    "FA3 e4m3": ("e4m3", _flash_attention_3),
    "FA3 bf16": ("bf16", _flash_attention_3),
}
"""What is measured beside our kernel for e4m3; torch and its cuDNN have no attention for it."""
