"""Measurements of kernels on a GPU: are they right, how fast are they, beside their peers."""
