"""What every room stands on: errors, findings, source places, architectures, types, tiles.

Standard library only.
"""
