"""Flash attention forward: for Ampere (mma.sync, cp.async), Hopper (TMA, wgmma; packed, e4m3) and Blackwell (tcgen05)."""
