"""Attention for tensor cores of the fifth generation: `one_cta`, a persistent kernel of one CTA an item."""
