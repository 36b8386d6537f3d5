"""Launch paths with torch, eager: streams, graphs, threads, clusters, dependent and cooperative launches, refusals."""

# The package is optional, and its types with it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import threading
from typing import Any

import torch

from warpsmith.base.errors import InputError, LaunchError
from warpsmith.kernels import gemm, rms_norm
from warpsmith.kernels.attention import hopper
from warpsmith.kernels.attention.reference import attention
from warpsmith.launch.context import context
from warpsmith.study.launch_kernels import cluster_rank, patient, scaled_add, scaled_copy
from warpsmith.toolchain import compile_ptx

__all__ = ["CHECKS", "require"]


def _random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to("cuda", dtype)


def require(condition: object, text: str) -> None:
    """Raise `AssertionError` with a text unless the condition holds."""
    if not condition:
        raise AssertionError(text)


def _raises(kind: type[Exception], words: str, action: Any) -> str:
    try:
        action()
    except kind as error:
        require(words in str(error), f"the message lacks {words!r}: {error}")
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


def outputs() -> None:
    """Outputs are allocated, or those given are written."""
    a, b = _random(1000), _random(1000, seed=1)
    c = scaled_add(a, b, s=2.0)
    require(torch.equal(c, torch.addcmul(b, a, torch.full_like(a, 2.0))), "wrong values")
    d = torch.zeros_like(a)
    require(scaled_add(a, b, d, s=2.0) is d and torch.equal(d, c), "the output given was not written")


def current_stream() -> None:
    """The launch is in torch's current stream, and in `stream=`."""
    a = torch.zeros(1 << 16, device="cuda")
    torch.cuda.synchronize()
    for explicit in (False, True):
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            a.fill_(3.0)
            c = None if explicit else scaled_copy(a, s=2.0)
        if explicit:
            c = scaled_copy(a, s=2.0, stream=side)
        side.synchronize()
        require(c is not None and bool((c == 6).all()), f"ran before the work of its stream (explicit={explicit})")
        a.zero_()
        torch.cuda.synchronize()


def graph() -> None:
    """Capture in a CUDA graph, the first launch of a kernel included; replay sees new inputs."""
    config = rms_norm.Config(64, 1024, "bf16", arch="sm_90a")
    k = rms_norm.build(config)
    x, w = _random(64, 1024, dtype=torch.bfloat16), _random(1024, dtype=torch.bfloat16, seed=1)
    y = torch.zeros_like(x)
    g = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(g):
        k(x, w, y)
        z = scaled_copy(y.float().reshape(-1), s=2.0)
    require(not y.any().item(), "the capture ran the kernel")
    g.replay()
    first = z.clone()
    require(torch.equal(y, k(x, w)) and torch.equal(z, 2 * y.float().reshape(-1)), "the replay differs from a launch")
    x.copy_(_random(64, 1024, dtype=torch.bfloat16, seed=5))
    g.replay()
    require(torch.equal(y, k(x, w)) and not torch.equal(first, z), "the replay does not see new inputs")


def two_streams() -> None:
    """Two threads launch one kernel in two streams at once, 2,000 times each."""
    wrong: list[str] = []

    def work(scale: float) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            a = torch.ones(4096, device="cuda")
            results = [scaled_copy(a, s=scale + i % 7) for i in range(2000)]
            torch.cuda.current_stream().synchronize()
            wrong.extend(f"{scale}: {i}" for i, r in enumerate(results) if not bool((r == scale + i % 7).all()))

    threads = [threading.Thread(target=work, args=(s,)) for s in (10.0, 1000.0)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    require(not wrong, f"{len(wrong)} wrong: {wrong[:3]}")


def fresh_thread() -> None:
    """A thread without a CUDA context launches on its tensors' device."""
    a = torch.ones(128, device="cuda")
    found: list[Any] = []
    t = threading.Thread(target=lambda: found.append(scaled_copy(a, torch.empty_like(a), s=3.0)))
    t.start()
    t.join()
    require(found and bool((found[0] == 3).all()), "no result")


def tensor_maps() -> str:
    """Tensor maps and 200 KB of dynamic shared memory: Hopper attention and GEMM against float64."""
    q, k, v = (_random(2, 300, 64, dtype=torch.float16, seed=i) for i in range(3))
    o, lse = hopper.build(hopper.Config(2, 300, 64, "f16", False))(q, k, v)[:2]
    want, want_lse = attention(*(t.cpu().numpy() for t in (q, k, v)), causal=False, scale=64**-0.5)
    error = max(abs(o.cpu().numpy().astype("f8") - want).max(), abs(lse.cpu().numpy() - want_lse).max())
    require(error < 4e-3, f"attention: error {error}")
    a, b = _random(200, 72, dtype=torch.bfloat16), _random(136, 72, dtype=torch.bfloat16, seed=1)
    c = gemm.build(gemm.Config(200, 136, 72, "bf16", "nt"))(a, b)
    gap = (c.double() - a.double() @ b.double().T).abs().max().item()
    require(gap < 0.2, f"gemm: error {gap}")
    return f"errors {error:.1e}, {gap:.1e}"


def same_maps() -> None:
    """The driver encodes a tensor map in the bytes that the simulator's encoder gives."""
    from_dsl = hopper.build(hopper.Config(2, 300, 64, "f16", False))
    q = _random(2, 300, 64, dtype=torch.float16)
    from_dsl(q, q, q)
    plan = context(0).recent[-1]
    maps = plan.tensor_maps()
    require(maps and all(ours == theirs for ours, theirs in maps), "the bytes differ")


def clusters() -> None:
    """Clusters of two CTAs."""
    c = torch.empty(512, device="cuda", dtype=torch.uint32)
    cluster_rank(c)
    require(c.cpu().tolist() == [0] * 128 + [1] * 128 + [0] * 128 + [1] * 128, "wrong ranks")


def dependent() -> None:
    """Programmatic dependent launch: a chain of 50 kernels."""
    x = torch.ones(1 << 20, device="cuda")
    for i in range(50):
        x = patient(x, s=2.0 if i % 2 else 0.5, programmatic=True)
    require(bool((x == 1).all()), "wrong values")


def cooperative() -> str:
    """Cooperative launch, and its refusal where the grid cannot be resident at once."""
    a = torch.ones(128 * 64, device="cuda")
    require(bool((scaled_copy(a, s=2.0, cooperative=True) == 2).all()), "wrong values")
    big = torch.ones(128 * 100_000, device="cuda")
    text = _raises(LaunchError, "(720)", lambda: scaled_copy(big, s=2.0, cooperative=True))
    return text.splitlines()[-1].strip()


def refusals() -> None:
    """Wrong dtype, strides, device, shapes and alignment are refused by name."""
    a = torch.ones(256, device="cuda")
    _raises(InputError, "argument b has dtype float64", lambda: scaled_add(a, a.double(), s=1.0))
    _raises(InputError, "argument b has strides (8,)", lambda: scaled_add(a, torch.ones(512, device="cuda")[::2], s=1.0))
    _raises(InputError, "host's memory", lambda: scaled_add(a, a.cpu(), s=1.0))
    _raises(InputError, "is 256 in one tensor and 255", lambda: scaled_add(a, a[:255], s=1.0))
    odd = torch.ones(1025, device="cuda", dtype=torch.uint8)[1:].view(torch.uint8)
    _raises(InputError, "argument a has dtype uint8", lambda: scaled_copy(odd, s=1.0))


def wrong_image() -> str:
    """A cubin for another architecture is refused before the driver sees it."""
    text = ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"
    cubin = compile_ptx(text).cubin
    return _raises(LaunchError, "compiled for sm_80", lambda: context(0).function(cubin, "k"))


def no_hidden_memory() -> None:
    """A launch with its outputs given allocates nothing on the device."""
    a, c = torch.ones(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
    scaled_copy(a, c, s=1.0)
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0], torch.cuda.memory_allocated()
    for _ in range(1000):
        scaled_copy(a, c, s=1.0)
    torch.cuda.synchronize()
    require((torch.cuda.mem_get_info()[0], torch.cuda.memory_allocated()) == before, "memory changed")


CHECKS = [
    outputs, current_stream, graph, two_streams, fresh_thread, tensor_maps, same_maps, clusters, dependent, cooperative,
    refusals, wrong_image, no_hidden_memory,
]  # fmt: skip
