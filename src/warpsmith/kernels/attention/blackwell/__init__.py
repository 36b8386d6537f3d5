"""Attention for tensor cores of the fifth generation: `one_cta` and `two_per_sm`, one and two CTAs a multiprocessor."""
