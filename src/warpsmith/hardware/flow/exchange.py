"""Steps of all threads of a CTA together: values handed over between barriers of every kind, asynchronous copies."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from warpsmith.hardware.flow.data import condition
from warpsmith.hardware.flow.nodes import Group
from warpsmith.hardware.flow.writer import CELL, WORDS

if TYPE_CHECKING:
    from warpsmith.hardware.flow.nodes import Node
    from warpsmith.hardware.flow.writer import Scope, Writer

__all__ = ["BARRIERS", "async_copy", "barrier", "bulk_copy", "by_flags", "by_halves", "exchange", "read_words", "slot"]

BARRIERS = 6
"""The mbarriers `bars` of a CTA: all threads (0), bulk copies (1), one lane a warp (2), remote arrivals (3), bytes (4)."""


def slot(w: Writer, into: str, array: str, each: int) -> str:
    """Return instructions that put an address in `array` into a register: for every thread that of other `each` bytes."""
    threads = w.shape.threads
    factor = 1 + w.stream.below(threads)
    while gcd(factor, threads) > 1:
        factor += 1
    shift = w.stream.below(threads)
    return (
        f"mad.lo.u32 {into}, %me, {factor}, {shift}; rem.u32 {into}, {into}, {threads}; mul.lo.u32 {into}, {into}, {each}; "
        f"mov.u32 %t5, {array}; add.u32 {into}, {into}, %t5;"
    )


def any_slot(w: Writer, scope: Scope, into: str, array: str, each: int) -> str:
    """Return instructions that put the address of some thread's place into a register, from data."""
    thread = f"rem.u32 {into}, {w.r(scope)}, {w.shape.threads};"
    return f"{thread} mul.lo.u32 {into}, {into}, {each}; mov.u32 %t5, {array}; add.u32 {into}, {into}, %t5;"


def wait(w: Writer, bar: str, phase: str, order: str = "") -> str:
    """Return instructions that wait for a phase of an mbarrier by its parity (`%ph<k>`) and step to the next."""
    again = w.label()
    test = w.stream.choice(("try_wait", "test_wait"))
    rest = w.stream.choice(("", "", "@!%u0 nanosleep.u32 20; "))
    loop = f"{again}: mbarrier.{test}.parity{order}.shared::cta.b64 %u0, [{bar}], {phase}; {rest}@!%u0 bra {again};"
    return f"{loop} xor.b32 {phase}, {phase}, 1;"


def barrier(w: Writer, scope: Scope) -> list[str]:
    """Return lines that are a barrier of all threads of the CTA."""
    k, threads = w.stream.below(14), w.shape.threads
    name = 1 + w.stream.below(7)
    count = f", {threads}" if w.shape.whole and w.stream.chance(50) else ""
    if k < 3:
        spelled = w.stream.choice(("bar.sync", "barrier.sync", "barrier.sync.aligned", "barrier.cta.sync", "bar.cta.sync"))
        return [f"{spelled} {name}{count};"]
    if k == 3:
        return [f"{w.stream.choice(('barrier', 'bar.cta', 'barrier.cta'))}.sync {w.stream.choice(('0', '%bar0'))};"]
    if k == 4:
        r = w.r(scope)
        return [
            f"{w.stream.choice(('bar.red', 'barrier.cta.red.aligned'))}.popc.u32 {r}, {name}{count}, {w.p(scope)}; {w.seen(r)}"
        ]
    if k == 5:
        operation, negated = w.stream.choice(("and", "or")), w.stream.choice(("", "!"))
        return [f"barrier.red.{operation}.pred {w.p(scope)}, {name}{count}, {negated}{w.p(scope)};"]
    if k == 6:
        return _in_arms(w, scope, name, count)
    if k == 7:
        again = w.label()
        arrive = w.stream.choice(("mbarrier.arrive.shared.b64", "mbarrier.arrive.release.cta.shared::cta.b64"))
        test = w.stream.choice(("try_wait", "test_wait"))
        return [
            f"{arrive} %a0, [bars]; xor.b32 %ph0, %ph0, 1;",
            f"{again}: mbarrier.{test}.shared.b64 %u0, [bars], %a0; @!%u0 bra {again};",
        ]
    if k == 8:
        return [
            "mbarrier.arrive.shared.b64 _, [bars];" if w.stream.chance(50) else "mbarrier.arrive.shared.b64 %a0, [bars];",
            wait(w, "bars", "%ph0"),
        ]
    if k == 9 and w.shape.whole:
        elected = "elect.sync _|%u0, -1;" if w.stream.chance(50) else "setp.eq.u32 %u0, %ln, 7;"
        return [f"bar.warp.sync -1; {elected} @%u0 mbarrier.arrive.shared.b64 _, [bars+16];", wait(w, "bars+16", "%ph2")]
    if k == 10 and w.shape.whole:
        return [
            "bar.warp.sync -1; setp.eq.u32 %u0, %ln, 0; @%u0 mbarrier.arrive.shared.b64 _, [bars], 32;",
            wait(w, "bars", "%ph0"),
        ]
    if k > 10 and w.shape.cluster:
        return [cluster_barrier(w)]
    return ["bar.sync 0;"]


def cluster_barrier(w: Writer) -> str:
    """Return a barrier of the cluster."""
    aligned = w.stream.choice(("", ".aligned"))
    arrive = w.stream.choice(("", ".release"))
    return f"barrier.cluster.arrive{arrive}{aligned}; barrier.cluster.wait{w.stream.choice(('', '.acquire'))}{aligned};"


def _in_arms(w: Writer, scope: Scope, name: int, count: str) -> list[str]:
    """Return a barrier without `.aligned` that lanes come to in two arms."""
    other, join = w.label(), w.label()
    a = w.r(scope)
    return [
        f"{condition(w, scope, '%u0')} @%u0 bra {other};",
        f"    add.u32 {a}, {a}, 1; barrier.sync {name}{count}; bra {join};",
        f"{other}: barrier.cta.sync {name}{count}; sub.u32 {a}, {a}, 3; {join}:",
    ]


def exchange(w: Writer, scope: Scope) -> Node | None:
    """Return lines in which every thread writes a place, and reads some thread's behind a barrier."""
    if not scope.cta:
        return None
    d, a, b, c = w.several(scope, 4)
    e = w.d(scope)
    width, read, written = w.stream.choice((
        ("b32", d, a), ("v2.b32", f"{{{d}, {a}}}", f"{{{b}, {c}}}"),
        ("v4.b32", f"{{{a}, {b}, {c}, {d}}}", f"{{{b}, {d}, {d}, {a}}}"),
        ("b64", e, w.d(scope)), ("u8", d, a), ("s16", d, c),
    ))  # fmt: skip
    seen = w.seen(d) if read != e else ""
    return Group((
        f"{slot(w, '%t0', 'buf', 16)} st.shared.{width} [%t0], {written};", *barrier(w, scope),
        f"{any_slot(w, scope, '%t1', 'buf', 16)} ld.shared.{width} {read}, [%t1]; {seen}", *barrier(w, scope),
    ))  # fmt: skip


def read_words(w: Writer, scope: Scope) -> Node | None:
    """Return lines that read what atomic operations have made of the common words, between barriers."""
    if not scope.cta:
        return None
    d = w.r(scope)
    address = f"and.b32 %t0, {w.r(scope)}, {4 * WORDS - 4}; mov.u32 %t1, words; add.u32 %t0, %t0, %t1;"
    return Group((*barrier(w, scope), f"{address} ld.shared.u32 {d}, [%t0]; {w.seen(d)}", *barrier(w, scope)))


def by_halves(w: Writer, scope: Scope) -> Node | None:
    """Return lines in which some warps write and arrive, and the others wait for them and read."""
    if not scope.cta or not w.shape.whole or w.shape.warps < 2:
        return None
    consume, join = w.label(), w.label()
    d, a = w.several(scope, 2)
    split = 1 + w.stream.below(w.shape.warps - 1)
    test = f"setp.{w.stream.choice(('ge', 'lt'))}.u32 %u0, %w, {split}; @%u0 bra{w.stream.choice(('', '.uni'))} {consume};"
    name = 8 + w.stream.below(4)
    arrive = w.stream.choice(("bar.arrive", "barrier.cta.arrive", "barrier.arrive.aligned"))
    # a consumer reads the place of a producer, which it finds from its own number
    other = f"add.u32 %t1, %me, {32 * split if 'ge' not in test else 0}; {_producer(w, split, 'ge' in test)}"
    return Group((
        f"{test} mov.u32 %t5, buf; mad.lo.u32 %t1, %me, 16, %t5; st.shared.b32 [%t1], {a};",
        f"{arrive} {name}, {w.shape.threads}; bra.uni {join};",
        f"{consume}: {w.stream.choice(('bar.sync', 'barrier.sync'))} {name}, {w.shape.threads}; {other}",
        f"mul.lo.u32 %t1, %t1, 16; mov.u32 %t5, buf; add.u32 %t1, %t1, %t5; ld.shared.b32 {d}, [%t1]; {w.seen(d)}",
        f"{join}:", *barrier(w, scope),
    ))  # fmt: skip


def _producer(w: Writer, split: int, first: bool) -> str:
    """Return instructions that put the number of a producing thread into `%t1`: the first warps produce, or the last."""
    threads, edge = w.shape.threads, 32 * split
    if first:
        return f"rem.u32 %t1, %t1, {edge};"
    return f"rem.u32 %t1, %t1, {threads - edge}; add.u32 %t1, %t1, {edge};"


def by_flags(w: Writer, scope: Scope) -> Node | None:
    """Return lines in which each warp writes, raises a flag with a release, and polls the flag of the next one."""
    if not scope.cta or not w.shape.whole:
        return None
    again = w.label()
    d, a = w.several(scope, 2)
    way = w.stream.choice(("st.release.cta.shared.u32 [%t0], %epoch;", "atom.release.cta.shared.exch.b32 %t2, [%t0], %epoch;",
                           "fence.acq_rel.cta; st.relaxed.cta.shared.u32 [%t0], %epoch;",
                           "red.release.cta.shared.add.u32 [%t0], 1;"))  # fmt: skip
    poll, after = w.stream.choice(
        (("ld.acquire.cta.shared.u32 %t3, [%t0];", ""), ("ld.relaxed.cta.shared.u32 %t3, [%t0];", "fence.acq_rel.cta;"))
    )
    return Group((
        f"add.u32 %epoch, %epoch, 1; mov.u32 %t5, buf; mad.lo.u32 %t1, %me, 16, %t5; st.shared.b32 [%t1], {a};",
        f"bar.warp.sync -1; setp.eq.u32 %u0, %ln, {w.stream.below(32)}; mov.u32 %t4, flags; mad.lo.u32 %t0, %w, 4, %t4;",
        f"@%u0 {way.replace('; ', '; @%u0 ')}",
        f"add.u32 %t1, %w, 1; rem.u32 %t1, %t1, {w.shape.warps}; mad.lo.u32 %t0, %t1, 4, %t4;",
        f"{again}: {poll} setp.ne.u32 %u0, %t3, %epoch; @%u0 bra {again}; {after}",
        f"mad.lo.u32 %t1, %t1, 32, %ln; xor.b32 %t1, %t1, {w.stream.below(32)}; mad.lo.u32 %t1, %t1, 16, %t5;",
        f"ld.shared.b32 {d}, [%t1]; {w.seen(d)}",
        *barrier(w, scope),
    ))  # fmt: skip


def async_copy(w: Writer, scope: Scope) -> Node | None:
    """Return lines in which every thread copies from global memory with `cp.async`, waits, and reads some thread's copy."""
    if not scope.cta:
        return None
    lines: list[str] = []
    d = w.r(scope)
    groups = 1 + w.stream.below(2)
    where = slot(w, "%t0", "buf", 16)
    for _ in range(groups):
        size = w.stream.choice((4, 8, 16)) if groups == 1 else 8
        at = f"and.b32 %t1, {w.r(scope)}, {CELL - size}; cvt.u64.u32 %a0, %t1; mov.u64 %a1, gtable; add.u64 %a0, %a0, %a1;"
        some = f", {w.stream.below(size + 1)}" if w.stream.chance(30) else ""
        how = "cg" if size == 16 and w.stream.chance(50) else "ca"
        part = 8 * len(lines) if groups == 2 else 0
        lines.append(f"{at} cp.async.{how}.shared.global [%t0+{part}], [%a0], {size}{some}; cp.async.commit_group;")
    first = ["cp.async.wait_group 1;"] if groups == 2 and w.stream.chance(50) else []
    end = [w.stream.choice(("cp.async.wait_all;", "cp.async.wait_group 0;")), *barrier(w, scope)]
    if w.stream.chance(40):
        # the arrival tells the copies, not what the thread stored itself
        first, end = [], ["cp.async.mbarrier.arrive.noinc.shared.b64 [bars];", wait(w, "bars", "%ph0"), *barrier(w, scope)]
    # the bytes that a copy does not bring are those of a zero
    return Group((
        f"{where} st.shared.v4.b32 [%t0], {{%acc, {w.r(scope)}, {w.r(scope)}, %me}};", *lines, *first, *end,
        f"{any_slot(w, scope, '%t1', 'buf', 16)} ld.shared.b32 {d}, [%t1+{4 * w.stream.below(4)}]; {w.seen(d)}",
        *barrier(w, scope),
    ))  # fmt: skip


def bulk_copy(w: Writer, scope: Scope) -> Node | None:
    """Return lines in which one thread copies a block from global memory, on whose barrier all wait; and back, perhaps."""
    if not scope.cta:
        return None
    d = w.r(scope)
    size, thread = w.stream.choice((16, 32, 64)), w.stream.below(w.shape.threads)
    copy = f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [gtable], {size}, [bars+8];"
    lines = [
        "fence.proxy.async.shared::cta;", "bar.sync 0;",
        f"setp.eq.u32 %u0, %me, {thread}; @%u0 mbarrier.arrive.expect_tx.shared.b64 _, [bars+8], {size}; @%u0 {copy}",
        wait(w, "bars+8", "%ph1"),
        f"and.b32 %t0, {w.r(scope)}, {size - 4}; mov.u32 %t5, buf; add.u32 %t0, %t0, %t5;",
        f"ld.shared.b32 {d}, [%t0]; {w.seen(d)}",
        *barrier(w, scope),
    ]  # fmt: skip
    if w.stream.chance(60):
        lines += [*_bulk_back(w, scope, d, thread), *barrier(w, scope)]
    return Group(tuple(lines))


def _bulk_back(w: Writer, scope: Scope, d: str, thread: int) -> list[str]:
    """Return lines that write shared memory, and store it to, or add it to, words of the CTA's own in global memory."""
    how = w.stream.choice(("cp.async.bulk.global.shared::cta.bulk_group",
                           "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32",
                           "cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.b32"))  # fmt: skip
    return [
        f"mov.u32 %t5, buf; mad.lo.u32 %t0, %me, 4, %t5; st.shared.b32 [%t0], {d}; fence.proxy.async.shared::cta; bar.sync 0;",
        f"setp.eq.u32 %u0, %me, {thread}; @%u0 {how} [%bulk], [buf], {4 * (w.shape.threads // 4 * 4)};",
        "@%u0 cp.async.bulk.commit_group; @%u0 cp.async.bulk.wait_group 0;",
    ]
