"""Every instruction chain that the attention kernels for Blackwell are written with (kernel-authoring surface, A.3)."""

from __future__ import annotations

from warpsmith import kernel, ptx, reg, smem
from warpsmith.types import b16, b32, b64, f16, f32, pred, s32, s64, u32, u64


def test_chains(assemble):
    @kernel(arch="sm_100a", block=(512, 1, 1), raw_directives=[("reqntid", (512, 1, 1))], smem=4096, extern_smem=True)
    def chains():
        i = ptx.inst
        u, s, b, w, sw = reg.scalar(u32, init=0), reg.scalar(s32), reg.scalar(b32), reg.scalar(u64), reg.scalar(s64)
        d, h, f, g = reg.scalar(b64), reg.scalar(b16), reg.scalar(f32, init=-127.0), reg.scalar(f32)
        half, p, q = reg.scalar(f16), reg.scalar(pred), reg.scalar(pred)
        lo, hi = reg.scalar(f32), reg.scalar(f32)
        base = smem.base()
        # moves
        i.mov.u32(u, 5)
        i.mov.b32(b, f)
        i.mov.b32(f, u)
        i.mov.f32(f, 1.0)
        i.mov.b64(d, [lo, hi])
        i.mov.b64([lo, hi], d)
        i.mov.b16(h, 3)
        i.mov.b32(b, [h, h])
        i.mov.u32(u, "%tid.x")
        # integer
        i.add.u32(u, u, 1)
        i.add.s32(s, s, -1)
        i.add.s64(sw, sw, 4)
        i.mul.lo.u32(u, u, 3)
        i.mul.wide.u32(w, u, 4)
        i.mad.lo.u32(u, u, 3, u)
        i.and_.b32(b, b, 96)
        i.or_.b32(b, b, 1)
        i.xor.b32(b, b, 1)
        i.shl.b32(b, b, 16)
        i.shr.u32(u, u, 5)
        i.and_.pred(p, p, q)
        # compare, vote
        for op in ("lt", "ge", "eq", "ne"):
            getattr(i.setp, op).u32(p, u, 4)
        for op in ("eq", "ne"):
            getattr(i.setp, op).b32(p, b, 0)
        for op in ("lt", "gt"):
            getattr(i.setp, op).f32(p, f, 1.0)
        i.vote.sync.ballot.b32(b, p, 0xFFFFFFFF)
        # f32
        i.add.f32(f, f, g)
        i.sub.f32(f, f, g)
        i.mul.f32(f, f, 0.5)
        i.fma.rn.f32(f, f, g, f)
        i.max.f32(f, f, g)
        i.max.f32(f, f, g, lo)
        i.max.ftz.f32(f, f, g)
        i.ex2.approx.ftz.f32(f, f)
        i.lg2.approx.f32(f, f)
        i.rcp.approx.f32(f, f)
        # packed f32x2
        i.fma.rn.ftz.f32x2(d, d, d, d)
        i.add.rm.ftz.f32x2(d, d, d)
        i.sub.rn.ftz.f32x2(d, d, d)
        # conversions
        i.cvt.rn.bf16x2.f32(b, f, g)
        i.cvt.rn.f16.f32(half, f)
        i.cvt.f32.f16(f, half)
        # f16x2
        i.fma.rn.f16x2(b, b, b, b)
        i.add.rn.f16x2(b, b, b)
        i.max.f16x2(b, b, b)
        i.ex2.approx.f16x2(b, b)
        # memory, barrier
        i.st.shared.b32(ptx.addr(base + 4, 8), b)
        i.st.global_.b32(ptx.addr(w), b)
        i.st.global_.v4.b32(ptx.addr(w, 16), [b, b, b, b])
        i.bar.arrive(1, 64)
        ptx.bar.sync(u, 64)
        ptx.fence.proxy_async_shared_cta()
        ptx.fence.proxy_async_generic_acquire_shared_cluster()
        total = [reg.scalar(u32), reg.scalar(u32)]
        total[0] ^= 1
        ptx.ret()

    assemble([chains])


def test_tcgen05_by_chain(assemble):
    @kernel(arch="sm_100a", block=(128, 1, 1), smem=1024)
    def tensor_memory():
        i = ptx.inst.tcgen05
        base, t, n = smem.base(), reg.scalar(b32), reg.scalar(u32, 32)
        r, d, on = reg.array(b32, 32), reg.scalar(b64), reg.scalar(pred, 1)
        i.alloc.cta_group__1.sync.aligned.shared__cta.b32(ptx.addr(base), n)
        i.relinquish_alloc_permit.cta_group__1.sync.aligned()
        i.ld.sync.aligned._32x32b.x32.b32(r, ptx.addr(t))
        i.wait__ld.sync.aligned()
        i.st.sync.aligned._32x32b.x32.b32(ptx.addr(t), r)
        i.wait__st.sync.aligned()
        i.fence__before_thread_sync()
        i.fence__after_thread_sync()
        i.mma.cta_group__1.kind__f16(ptx.addr(t), d, d, n, on)
        i.commit.cta_group__1.mbarrier__arrive__one.shared__cluster.b64(ptx.addr(base, 8))
        i.dealloc.cta_group__1.sync.aligned.b32(t, n)
        ptx.ret()

    assemble([tensor_memory])
