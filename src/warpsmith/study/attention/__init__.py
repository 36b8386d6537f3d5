"""Attention forward beside its peers on one GPU, in one process: `python -m warpsmith.study.attention`."""
