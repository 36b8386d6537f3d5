"""Every shipped kernel assembles, without spills and without ptxas's complaints about wgmma or setmaxnreg."""

import pytest

from warpsmith.kernels import gemm, rms_norm
from warpsmith.kernels.attention import ampere, hopper, hopper_fp8, hopper_packed
from warpsmith.toolchain import compile_ptx


def configurations():
    for dtype in ("f16", "bf16"):
        for causal in (False, True):
            for dim in (64, 128):
                for sequence in (1, 127, 128, 1000):
                    shape = {"heads": 2, "sequence": sequence, "dim": dim, "dtype": dtype, "causal": causal}
                    yield ampere, ampere.Config(**shape)
                    yield hopper, hopper.Config(**shape)
        yield hopper, hopper.Config(2, 1000, 64, dtype, causal, consumers=3)
        yield hopper, hopper.Config(4, 1000, 192, dtype, causal=False, keys=112)
        yield hopper, hopper.Config(4, 1000, 256, dtype, causal=True, keys=80)
        for dim, how in ((64, {}), (64, {"consumers": 3}), (128, {}), (256, {"keys": 80}), (128, {"consumers": 3, "keys": 80})):
            for causal in (False, True):
                yield hopper_packed, hopper.Config(4, 1, dim, dtype, causal, packed=1, **how)
        for dim, value_dim in ((96, 0), (192, 128), (256, 0), (64, 256), (32, 16)):
            yield hopper, hopper.choose(4, 1000, dim, dtype, causal=True, value_dim=value_dim)
        yield hopper, hopper.Config(4, 1000, 128, dtype, True, consumers=3, keys=80, window=300, kv_heads=2, soft_cap=30.0)
        for causal in (False, True):
            for dim, consumers, keys in ((64, 2, 128), (64, 3, 128), (64, 4, 64), (128, 2, 128), (128, 3, 80)):
                for threshold in (0.0, 8.0):
                    tiling = {"consumers": consumers, "keys": keys, "threshold": threshold, "ordered": 1, "staged": 1}
                    yield hopper, hopper.Config(2, 1000, dim, dtype, causal, **tiling)
        yield hopper, hopper.Config(2, 1000, 64, dtype, causal, emulated=2, threshold=8.0)
        yield rms_norm, rms_norm.Config(4, 5000, dtype)
        yield gemm, gemm.Config(200, 136, 72, dtype, "nt")
        yield gemm, gemm.Config(200, 136, 72, dtype, "nn", 256, 3)
    for dim, consumers, keys in ((64, 2, 128), (64, 3, 128), (64, 4, 64), (128, 2, 128), (128, 3, 96), (192, 2, 64)):
        for columns in (0, 1):
            tiling = {"consumers": consumers, "keys": keys, "columns": columns, "ordered": 1, "staged": 1}
            causal = columns == (dim == 64)
            yield hopper_fp8, hopper.Config(4, 1008, dim, "e4m3", causal, kv_heads=2, **tiling)
    for dim, columns in ((32, 0), (96, 1), (256, 0), (256, 1)):
        yield hopper_fp8, hopper_fp8.choose(4, 1008, dim, "e4m3", causal=True, columns=columns)
    yield hopper_fp8, hopper.Config(4, 1008, 128, "e4m3", keys=224, v_stages=1, k_stages=1, staged=1, output="f16")


@pytest.mark.parametrize(
    ("module", "config"), list(configurations()), ids=lambda x: getattr(x, "__name__", repr(x)).rpartition(".")[2]
)
def test_assembles_clean(module, config):
    kernel = module.build(config)
    compilation = compile_ptx(kernel.ptx(), kernel.arch)
    assert [str(f) for f in compilation.findings] == []
    for resources in compilation.resources.values():
        assert (resources.spill_stores, resources.spill_loads, resources.stack) == (0, 0, 0)
