"""Derive instruction tables from what a disassembler prints when bits are flipped."""
