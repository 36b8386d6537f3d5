"""Flash attention forward: an Ampere kernel (mma.sync, cp.async) and a Hopper kernel (TMA, wgmma)."""
