"""Cases of mbarriers, asynchronous copies, bulk copies and reductions, remote stores, from the declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.isa import rows
from warpsmith.base.ptx_types import TYPES
from warpsmith.hardware.machine_case import Case, executable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.assembly.ptx.isa import Match

__all__ = ["async_cases"]

_ARCH = "sm_90a"
_PEER = ".reg .b32 %rank, %far, %farbar; mov.u32 %rank, %cluster_ctarank; xor.b32 %rank, %rank, 1;"
_TO_PEER = "mapa.shared::cluster.u32 %far, %s, %rank; mapa.shared::cluster.u32 %farbar, %bar, %rank;"
_TOGETHER = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"


_GENERIC = """.reg .b64 %fara, %farb; mapa.u64 %fara, %sg, %rank; cvt.u64.u32 %farb, %bar;
cvta.shared.u64 %farb, %farb; mapa.u64 %farb, %farb, %rank;"""


def _wait(label: str) -> str:
    return f".reg .pred %done; {label}: mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0; @!%done bra {label};"


def _words(count: int, where: str, first: int = 0) -> tuple[list[str], list[tuple[str, int]]]:
    lines = [f".reg .b64 %w<{count}>;"]
    kind = "global" if where == "%cell" else "shared"
    lines += [f"ld.{kind}.b64 %w{k}, [{where}+{8 * (first + k)}];" for k in range(count)]
    return lines, [(f"%w{k}", 64) for k in range(count)]


# --- mbarriers --------------------------------------------------------------------------------------------------------


def _probe(k: int) -> str:
    return (
        f"mbarrier.test_wait.parity.shared.b64 %pa, [%bar], 0; mbarrier.test_wait.parity.shared.b64 %pb, [%bar], 1; "
        f"selp.b32 %d{k}, 1, 0, %pa; selp.b32 %g, 2, 0, %pb; or.b32 %d{k}, %d{k}, %g;"
    )


def _barrier_place(m: Match) -> str:
    return "[%bar]" if "shared" in m.mnemonic else "[%generic]"


_START = (
    ".reg .b32 %d<10>; .reg .b64 %state, %last, %generic; .reg .pred %pa, %pb; cvt.u64.u32 %generic, %bar; "
    "cvta.shared.u64 %generic, %generic; mov.b64 %state, 0; mbarrier.init.shared.b64 [%bar], 4;"
)
_END = "mbarrier.inval.shared.b64 [%bar];"


def _objects() -> Iterator[Case]:
    for row in rows("mbarrier"):
        for m in executable(row, _ARCH):
            words = m.mnemonic.split(".")
            if words[1] in ("arrive", "arrive_drop"):
                yield _arrival(m, words)
            elif words[1] in ("test_wait", "try_wait"):
                yield _test(m, words)
            elif words[1] in ("expect_tx", "complete_tx"):
                yield _transaction(m, words)
            elif words[1] == "check_layout":
                lines = [_START, f"{m.mnemonic} %pa, {_barrier_place(m)}; selp.b32 %d0, 1, 0, %pa;", _END]
                yield Case((m.mnemonic,), lines, [("%d0", 32)])
            elif words[1] == "pending_count":
                lines = [_START, "mbarrier.arrive.shared.b64 %state, [%bar], 2;", f"{m.mnemonic} %d0, %state;", _END]
                yield Case((m.mnemonic,), lines, [("%d0", 32)])
            elif words[1] == "init":
                lines = [
                    _START.replace("mbarrier.init.shared.b64 [%bar], 4;", f"{m.mnemonic} {_barrier_place(m)}, 4;"),
                    _probe(0),
                ]
                yield Case((m.mnemonic,), [*lines, _END], [("%d0", 32)])
            else:  # inval: the place may hold another object afterwards
                lines = [_START, f"{m.mnemonic} {_barrier_place(m)};", "mbarrier.init.shared.b64 [%bar], 1;", _probe(0), _END]
                yield Case((m.mnemonic,), lines, [("%d0", 32)])


def _arrival(m: Match, words: list[str]) -> Case:
    """The arrival, then as many more as end the phase and one beyond; what waits see in between, and pending counts."""
    names = [s.name for s in m.operands]
    sink = "_" in names
    count, tx = "count" in names and (not sink or len(words) % 2 == 0), "tx" in names
    arrived = 2 if count else 1
    operands = ["_" if sink else "%state", _barrier_place(m), *(("16",) if tx else ()), *(("2",) if count else ())]
    lines = [_START, f"{m.mnemonic} {', '.join(operands)};", _probe(0)]
    lines += ["mov.b32 %d1, 0;" if sink else "mbarrier.pending_count.b64 %d1, %state;"]
    k = 2
    for _ in range(4 - arrived):
        lines += ["mbarrier.arrive.shared.b64 %last, [%bar];", f"mbarrier.pending_count.b64 %d{k}, %last;"]
        k += 1
    lines.append(_probe(k))
    if tx:
        lines.append("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%bar], 16;")
    lines += [_probe(k + 1), "mbarrier.arrive.shared.b64 %last, [%bar];", f"mbarrier.pending_count.b64 %d{k + 2}, %last;", _END]
    return Case((m.mnemonic,), lines, [(f"%d{i}", 32) for i in range(k + 3)])


def _test(m: Match, words: list[str]) -> Case:
    operand = "0" if "parity" in words else "%state"
    test = [f"{m.mnemonic} %pa, {_barrier_place(m)}, {operand}; selp.b32 %d{{}}, 1, 0, %pa;"]
    lines = [_START, "mbarrier.arrive.shared.b64 %state, [%bar];"]
    lines += [test[0].format(0)] if words[1] == "test_wait" else ["mov.b32 %d0, 0;"]  # try_wait may take its time
    return Case(
        (m.mnemonic,),
        [*lines, "mbarrier.arrive.shared.b64 %last, [%bar], 3;", test[0].format(1), _END],
        [("%d0", 32), ("%d1", 32)],
    )


def _transaction(m: Match, words: list[str]) -> Case:
    expect = "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%bar], 24;"
    complete = "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%bar], 24;"
    mine = f"{m.mnemonic} {_barrier_place(m)}, 24;"
    pair = (mine, complete) if words[1] == "expect_tx" else (expect, mine)
    lines = [_START, pair[0], "mbarrier.arrive.shared.b64 %state, [%bar], 4;", _probe(0), pair[1], _probe(1), _END]
    return Case((m.mnemonic,), lines, [("%d0", 32), ("%d1", 32)])


# --- cp.async ---------------------------------------------------------------------------------------------------------


def _hint(m: Match) -> str:
    return ", %policy" if "L2::cache_hint" in m.mnemonic else ""


def _small_copies() -> Iterator[Case]:
    number = 0
    for row in rows("cp"):
        for m in executable(row, _ARCH):
            words = m.mnemonic.split(".")
            if words[1] != "async" or words[2] in ("bulk",):
                continue
            number += 1
            if words[2] in ("ca", "cg"):
                sizes = (16,) if words[2] == "cg" else (4, 8, 16)
                for size in sizes:
                    yield _small_copy(m, size)
            elif words[2] == "mbarrier":
                yield _arrive_on(m, number)
            else:
                argument = " 0" if words[2] == "wait_group" else ""
                end = "" if words[2] == "wait_all" else " cp.async.wait_all;" if words[2] == "commit_group" else ""
                group = " cp.async.commit_group;" if words[2] == "wait_group" else ""
                lines = [f"cp.async.ca.shared.global [%s], [%cell+16], 16;{group} {m.mnemonic}{argument};{end}"]
                after, puts = _words(3, "%s")
                yield Case((m.mnemonic,), [*lines, *after], puts)


def _small_copy(m: Match, size: int) -> Case:
    names = [s.name for s in m.operands]
    third, first = "", ""
    if "size" in names:
        first, third = f"and.b32 %g, %n, 31; min.u32 %g, %g, {size};", ", %g"
    elif "ignore" in names:
        first, third = ".reg .pred %q; and.b32 %g, %n, 1; setp.ne.u32 %q, %g, 0;", ", %q"
    after, puts = _words(3, "%s", 2)
    return Case(
        (m.mnemonic,), [first, f"{m.mnemonic} [%s+16], [%cell+32], {size}{third}{_hint(m)}; cp.async.wait_all;", *after], puts
    )


def _arrive_on(m: Match, number: int) -> Case:
    noinc = "noinc" in m.mnemonic
    lines = [_START.replace(", 4;", f", {2 if noinc else 1};"), "cp.async.cg.shared.global [%s+32], [%cell+16], 16;"]
    lines += [
        f"{m.mnemonic} {_barrier_place(m)};",
        "mbarrier.arrive.shared.b64 %state, [%bar];",
        _wait(f"LOADED{number}"),
        _END,
    ]
    after, puts = _words(2, "%s", 4)
    return Case((m.mnemonic,), [*lines, *after], puts)


# --- bulk copies ------------------------------------------------------------------------------------------------------


def _bulk() -> Iterator[Case]:
    number = 0
    for row in rows("cp"):
        for m in executable(row, _ARCH):
            words = m.mnemonic.split(".")
            if "bulk" not in words or "tensor" in words:
                continue
            number += 1
            if "prefetch" in words:
                yield Case((m.mnemonic,), [f"{m.mnemonic} [%cell], 64{_hint(m)};"], [("%x0", 64)])
            elif words[-1] == "commit_group" or "wait_group" in words:
                yield _group(m, words)
            elif ".global.shared::cta" in m.mnemonic:
                yield _out(m)
            elif "shared::cluster.shared::cta" in m.mnemonic:
                yield _across(m, number)
            else:
                yield _in(m, number)


_SEEN = "fence.proxy.async;"


def _group(m: Match, words: list[str]) -> Case:
    copy = f"{_SEEN} cp.async.bulk.global.shared::cta.bulk_group [%cell], [%s+32], 32;"
    ends = f"{m.mnemonic};" if words[-1] == "commit_group" else f"cp.async.bulk.commit_group; {m.mnemonic} 0;"
    after, puts = _words(2, "%cell")
    return Case((m.mnemonic,), [copy, ends, "cp.async.bulk.wait_group 0;", *after], puts)


def _out(m: Match) -> Case:
    """Shared to global, plain or reducing."""
    lines = [f"{_SEEN} {m.mnemonic} [%cell], [%s], 64{_hint(m)}; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"]
    after, puts = _words(8, "%cell")
    return Case((m.mnemonic,), [*lines, *after], puts)


def _in(m: Match, number: int) -> Case:
    multicast = "multicast" in m.mnemonic
    mask = ".reg .b16 %mask; .reg .b32 %one; mov.u32 %g, %cluster_ctarank; shl.b32 %one, 1, %g; cvt.u16.u32 %mask, %one;"
    ignored = ", 3, 6" if "ignore_oob" in m.mnemonic else ""  # bytes at both ends that are not copied
    copy = f"{m.mnemonic} [%s], [%cell], 48{ignored}, [%bar]{', %mask' if multicast else ''}{_hint(m)};"
    lines = [mask if multicast else "", "mbarrier.init.shared.b64 [%bar], 1; fence.mbarrier_init.release.cluster;", _SEEN]
    lines += ["mbarrier.arrive.expect_tx.shared::cta.b64 %at, [%bar], 48;", copy, _wait(f"IN{number}")]
    after, puts = _words(8, "%s")
    puts = [p for k, p in enumerate(puts) if not ignored or k not in (0, 5)]  # what these words hold is left open
    return Case((m.mnemonic,), [*lines, "mbarrier.inval.shared.b64 [%bar];", *after], puts, cluster=multicast)


def _across(m: Match, number: int) -> Case:
    """Half of the peer's cell from half of mine, plain or reducing; its barrier counts the bytes."""
    lines = [_PEER, "mbarrier.init.shared.b64 [%bar], 1; fence.mbarrier_init.release.cluster;", _SEEN]
    lines += ["mbarrier.arrive.expect_tx.shared::cta.b64 %at, [%bar], 32;", _TOGETHER, _TO_PEER, "add.u32 %far, %far, 32;"]
    lines += [
        f"{m.mnemonic} [%far], [%s], 32, [%farbar];",
        _wait(f"ACROSS{number}"),
        _TOGETHER,
        "mbarrier.inval.shared.b64 [%bar];",
    ]
    after, puts = _words(8, "%s")
    return Case((m.mnemonic,), [*lines, *after], puts, cluster=True)


def _remote() -> Iterator[Case]:
    number = 0
    for row in (*rows("st"), *rows("red")):
        for m in executable(row, _ARCH):
            words = m.mnemonic.split(".")
            if words[1] != "async":
                continue
            number += 1
            type_ = words[-1]
            count = next((int(w[1:]) for w in words if w in ("v2", "v4")), 1)
            size = TYPES[type_].bits // 8 * count
            names = [f"%v{k}" for k in range(count)]
            sources = f".reg .b{TYPES[type_].bits} %v<{count}>;"
            move = {64: "mov.b64 {}, %x{};", 128: "mov.b128 {}, {{%x{}, %x6}};"}.get(TYPES[type_].bits, "cvt.u32.u64 {}, %x{};")
            sources += " ".join(move.format(n, k + 1) for k, n in enumerate(names))
            value = names[0] if count == 1 else "{" + ", ".join(names) + "}"
            lines = [_PEER, sources, "mbarrier.init.shared.b64 [%bar], 1; fence.mbarrier_init.release.cluster;"]
            lines += [f"mbarrier.arrive.expect_tx.shared::cta.b64 %at, [%bar], {size};", _TOGETHER, _TO_PEER]
            place = "[%far], {}, [%farbar];"
            if "shared::cluster" not in words:  # generic addresses of the peer's memory
                lines.append(_GENERIC)
                place = "[%fara], {}, [%farb];"
            lines += [f"{m.mnemonic} {place.format(value)}", _wait(f"REMOTE{number}"), _TOGETHER]
            after, puts = _words(2, "%s")
            yield Case((m.mnemonic,), [*lines, "mbarrier.inval.shared.b64 [%bar];", *after], puts, cluster=True)


def async_cases() -> list[Case]:
    """Return every case of this module."""
    return [*_objects(), *_small_copies(), *_bulk(), *_remote()]
