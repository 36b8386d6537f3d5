"""Canonical shared-memory layouts of wgmma operands."""

from __future__ import annotations

from warpsmith.base.matrix_layout import GmmaLayout, LayoutType, Major, layout_for_a, layout_for_b, pick_gmma_layout

__all__ = ["GmmaLayout", "LayoutType", "Major", "layout_for_a", "layout_for_b", "pick_gmma_layout"]
