"""Findings of the simulator: one file per kind or family."""
