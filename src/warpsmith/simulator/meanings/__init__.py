"""What instructions do: one file per section of the manual, keyed by the declarations of `assembly/ptx/isa`."""
