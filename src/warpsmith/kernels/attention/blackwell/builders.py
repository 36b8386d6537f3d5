"""Builders by the numbers of a problem: `seqlen`, `batch_heads`, `head_dim`, and keywords for every option.

The tensors are `[batch_heads * seqlen, head_dim]`, and only the output is returned. `one_cta.build`, `two_cta.build` and
`two_per_sm.build` take a `Config`, tensors of three dimensions, any length, and also give the log-sum-exp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.base.errors import InputError
from warpsmith.kernels.attention.blackwell import one_cta, two_cta, two_per_sm

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["build_attention", "build_attention_2cta", "build_attention_occ2"]


def build_attention(
    seqlen: int,
    batch_heads: int,
    head_dim: int = 128,
    *,
    sm_scale: float | None = None,
    arch: str = "sm_100a",
    rescale_threshold: float = 8.0,
    num_sms: int = 148,
    emu_pairs: Sequence[int] = (1, 3, 5, 7),
    s_f16: bool = False,
    dbg_f16_noexp: bool = False,
    waitmap: bool = False,
    dbg_scoreboard_ld: bool = False,
    dbg_lockstep: bool | str = False,
    dbg_epi_gate: str = "softmax",
    dtype: str | None = None,
    causal: bool = False,
    lse: bool = False,
) -> Any:
    """Return the persistent kernel of one CTA: (q, k, v) → o, all `[batch_heads * seqlen, head_dim]`.

    `sm_scale` is 1/√head_dim by default; `num_sms` bounds the CTAs; `emu_pairs` of the 16 pairs in 32 columns are
    computed by a polynomial. `s_f16` accumulates scores in f16 (tensors are f16 then), `dbg_f16_noexp` leaves the exponentials
    and the division out. `waitmap` adds the record `[512, WAITMAP_MAX_SITES]`, which `kernel._waitmap` decodes.
    `dbg_scoreboard_ld` leaves out `wait::ld` in the softmax, which PTX does not promise to work. `dbg_lockstep` lets all roles
    meet after each item, or all but one ("no_softmax", "no_corr", "no_mma", "no_load"). `dbg_epi_gate` is "softmax" or "mma".
    `dtype` is bf16, with `s_f16` f16, by default; `lse` adds the log-sum-exp `[batch_heads, seqlen]`. Raise `InputError` for
    what it does not compute, and for a seqlen that is no multiple of 128.
    """
    return one_cta.build(
        one_cta.Config(
            heads=batch_heads, sequence=seqlen, dim=head_dim, dtype=dtype or ("f16" if s_f16 else "bf16"), causal=causal,
            scale=sm_scale, arch=arch, rescale_threshold=rescale_threshold, multiprocessors=num_sms,
            emulated_pairs=tuple(emu_pairs), half_scores=s_f16, no_exponentials=dbg_f16_noexp, waitmap=waitmap,
            scoreboard_loads=dbg_scoreboard_ld, lockstep=dbg_lockstep, epilogue_gate=dbg_epi_gate, lse=lse, flat=True,
        )
    )  # fmt: skip


def build_attention_occ2(
    seqlen: int,
    batch_heads: int,
    head_dim: int = 128,
    *,
    sm_scale: float | None = None,
    arch: str = "sm_100a",
    rescale_threshold: float = 8.0,
    dtype: str = "bf16",
    causal: bool = False,
    lse: bool = False,
    waitmap: bool = False,
) -> Any:
    """Return the kernel for two CTAs a multiprocessor: (q, k, v) → o; arguments as those of `build_attention`."""
    return two_per_sm.build(
        two_per_sm.Config(
            heads=batch_heads, sequence=seqlen, dim=head_dim, dtype=dtype, causal=causal, scale=sm_scale, arch=arch,
            rescale_threshold=rescale_threshold, lse=lse, waitmap=waitmap, flat=True,
        )
    )  # fmt: skip


_STEPS = "the simulator names the line of a wrong product, and `warpsmith check` the barrier of a hang with every role's wait"
_REFUSED = {
    "debug_plumbing": (False, f"roles that pass barriers on without data look for a hang on hardware; {_STEPS}"),
    "debug_blind_feed": (False, f"it belongs to debug_plumbing; {_STEPS}"),
    "debug_paced_sim": (False, f"it belongs to debug_plumbing; {_STEPS}"),
    "debug_mma_level": (4, f"leaving products out looks for the one that hangs on hardware; {_STEPS}"),
    "debug_pv_smem_a": (False, f"P from shared memory looks for a fault of P in tensor memory on hardware; {_STEPS}"),
    "debug_beacon": (False, "bounded waits that go on compute wrong results; waitmap=True records every wait instead"),
}
"""Debug mode -> its default, and why there is no other."""


def build_attention_2cta(
    seqlen: int,
    batch_heads: int,
    head_dim: int = 128,
    *,
    sm_scale: float | None = None,
    arch: str = "sm_100a",
    rescale_threshold: float = 8.0,
    waitmap: bool = False,
    dbg_v_stride: int | None = None,
    dbg_v_leading: int | None = None,
    dtype: str = "bf16",
    causal: bool = False,
    lse: bool = False,
    **debug: Any,
) -> Any:
    """Return the kernel for pairs of CTAs: (q, k, v) → o; arguments as those of `build_attention`.

    `dbg_v_stride` and `dbg_v_leading` are the offsets in V's descriptor, in bytes. `debug_plumbing`, `debug_blind_feed`,
    `debug_paced_sim`, `debug_mma_level`, `debug_pv_smem_a` and `debug_beacon` have their defaults only: anything else
    raises `InputError` with the reason.
    """
    for name, value in debug.items():
        if name not in _REFUSED:
            raise InputError(f"attention: there is no option {name!r}; debug modes are {', '.join(_REFUSED)}")
        default, reason = _REFUSED[name]
        if value != default:
            raise InputError(f"attention: {name} is {default} only: {reason}")
    return two_cta.build(
        two_cta.Config(
            heads=batch_heads, sequence=seqlen, dim=head_dim, dtype=dtype, causal=causal, scale=sm_scale, arch=arch,
            rescale_threshold=rescale_threshold, lse=lse, waitmap=waitmap, flat=True, value_stride=dbg_v_stride,
            value_leading=dbg_v_leading,
        )
    )  # fmt: skip
