"""Attention for tensor cores of the fifth generation: `one_cta`, `two_per_sm` (two CTAs an SM), `two_cta` (pairs of CTAs)."""
