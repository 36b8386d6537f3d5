"""10^5 mutated cubins and 10^5 mutated fat binaries: no crash, no hang, no memory blow-up."""

from __future__ import annotations

import resource

from containers import container, entry, host_elf
from cubin_corpus import DATA, cubins
from cubin_fuzz import archive_seeds, find_mutant, mutants, read_cubin_mutant


def peak() -> int:
    """Most memory this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def test_cubins() -> None:
    before = peak()
    for data in mutants(list(cubins().values()), 100_000, seed=3):
        read_cubin_mutant(data)
    assert peak() - before < 256


def test_fat_binaries() -> None:
    before = peak()
    seeds = [(DATA / name).read_bytes() for name in ("lz4.fatbin", "zstd.fatbin")]
    seeds.append(host_elf({".nv_fatbin": container(entry(cubins()["ptxas-13.5-sm_100a"]))}))
    for data in mutants(seeds, 100_000, seed=4):
        find_mutant(data)
    assert peak() - before < 256


def test_archives() -> None:
    before = peak()
    for data in mutants(archive_seeds(), 100_000, seed=5):
        find_mutant(data)
    assert peak() - before < 256
