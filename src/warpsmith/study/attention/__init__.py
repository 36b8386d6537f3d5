"""Attention forward beside its peers on one GPU, in one process: `warpsmith study attention`."""
