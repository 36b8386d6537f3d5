"""Kernels shipped with Warpsmith, written in the DSL as a user would write them."""
