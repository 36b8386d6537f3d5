"""A hundred thousand words drawn from all code of four libraries: all exact, all given back.

docs/audit.md reports on all of their words.
"""

from __future__ import annotations

import re
from pathlib import Path

from audit_sample import audit_sample
from containers import container, entry
from warpsmith.cubin import Cubin
from warpsmith.sass.audit import audit

UNKNOWN: dict[str, int] = {}
"""Architecture -> words whose form its table lacks; the list may only shrink."""

FLAGS = {"": 0x11, "a": 0x100011, "f": 0x200011}


def test_the_sample_is_exact(tmp_path: Path) -> None:
    words = audit_sample()
    assert sum(len(w) for w in words.values()) == 100_000
    entries: list[bytes] = []
    for arch, drawn in words.items():
        made = Cubin.new("sm_90a")  # of whatever architecture: the container's entry names it
        made.add_function("k", b"".join(w.to_bytes(16, "little") for w in drawn), registers=32)
        m = re.fullmatch(r"sm_(\d+)([af]?)", arch)
        assert m
        entries.append(entry(made.write(), arch=int(m[1]), flags=FLAGS[m[2]]))
    (tmp_path / "sample.fatbin").write_bytes(container(*entries))
    report = audit([tmp_path / "sample.fatbin"])
    assert report.unread == []
    assert {(e.arch, e.kind) for e in report.examples} == {(arch, "unknown") for arch in UNKNOWN}
    assert report.tallies.keys() == words.keys()
    for arch, drawn in words.items():
        total = report.total(arch)
        # behind the code stands padding, of two words at most
        assert len(drawn) <= total.raw <= len(drawn) + 2
        assert total.raw - total.encoded == total.unknown == UNKNOWN.get(arch, 0)
        assert total.exact == total.words - total.unknown > 0
