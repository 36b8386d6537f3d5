"""Tensor arguments of kernels: `Tile`, `Layout`."""

from __future__ import annotations

from warpsmith.base.layout import Layout
from warpsmith.base.tile import Dim, Tile, unify_envs

__all__ = ["Dim", "Layout", "Tile", "unify_envs"]
