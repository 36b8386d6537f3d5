"""Kernels on a real GPU, through the CUDA driver."""
