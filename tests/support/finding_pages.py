"""The pages of docs/findings/: one for each kind, with a broken and a repaired kernel and what is said of the broken one.

The kernels are those of the mutation tests: the mutant named here is the broken one.
"""

from __future__ import annotations

import difflib
import importlib.util
from pathlib import Path
from typing import Any

from miscompiled_page import body_of
from warpsmith.findings import KINDS, Kind

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "findings"
CHOSEN = {
    "deadlock": "nobody gives a stage back",
    "phase-alias": "every consumer arrives twice",
    "over-arrival": "a count below the consumers",
    "tx-mismatch": "fewer bytes announced than copied",
    "uninitialised-barrier": "a barrier nobody initialises",
    "async-read-before-complete": "no wait for the group",
    "register-before-wait": "no wait",
    "named-barrier": "counts that differ",
    "out-of-bounds": "one word too far",
    "uninitialised-read": "the tile is not filled",
    "divergent-collective": "a shuffle in a branch",
    "leftover": "the reader frees once more",
    "peer-lifetime": "no barrier before the first access",
    "cluster-exit": "no barrier behind the last access",
    "empty-commit": "the group is not closed before its source is reused",
    "setmaxnreg-budget": "raised to fewer registers",
    "descriptor-mismatch": "B is read without a swizzle",
    "async-overwrite": "the tile is written while it is read",
    "shared-race": "no barrier between the store and the load",
    "global-race": "a relaxed store and no fence",
    "missing-proxy-fence": "no fence before a copy out of shared memory",
    "tmem-lifetime": "the columns of A are not allocated",
    "tmem-alias": "no wait for the first product",
    "missing-tcgen05-wait": "no wait for the loads of D",
    "missing-tcgen05-fence": "no fence before the first load",
    "trap": "a trap on the way",
    "livelock": "a loop without an end",
}
"""Kind -> what its mutant does (`test_mutants.MUTANTS`)."""
_TOOLCHAIN = (
    "This kind comes from the toolchain: `warpsmith compile` and `warpsmith check --ptxas` report it, at the line that ptxas "
    "names.\n"
)


def mutation_tests() -> Any:
    """Return the module of the mutation tests."""
    path = ROOT / "tests" / "pure" / "simulator" / "mutants" / "test_mutants.py"
    spec = importlib.util.spec_from_file_location("mutants_of_pages", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page_of(kind: Kind, tests: Any) -> str:
    """Return the page of a kind; its example runs."""
    head = f"# {kind.name}\n\n{kind.wrong}\n\n**Repair.** {kind.repair}\n\n"
    if kind.name == "ptxas-miscompiles":
        return head + body_of()
    if kind.name not in CHOSEN:
        return head + _TOOLCHAIN
    mutant = next(m for m in tests.MUTANTS if (m.kind, m.what) == (kind.name, CHOSEN[kind.name]))
    repaired, broken = tests.text_of(mutant.kernel), tests.broken(mutant)
    return (
        head
        + f"## A broken kernel\n\nIn the kernel below: {mutant.what}. What the broken one has instead (`+`):\n\n"
        + f"```diff\n{_difference(repaired, broken)}```\n\n"
        + f"The simulator says:\n\n```text\n{finding_of(mutant, tests)}\n```\n\n"
        + f"## The repaired kernel\n\nIt has no finding under any schedule tried.\n\n```ptx\n{repaired}```\n"
    )


def finding_of(mutant: Any, tests: Any) -> str:
    """Return the finding of a mutant's kind at its line, under the fair schedule."""
    result, _ = tests.launch(mutant.kernel, tests.broken(mutant))
    return str(next(f for f in result.findings if f.kind == mutant.kind and f.where.line == tests.line_of(mutant))).replace(
        "<string>", f"{mutant.kernel}.ptx"
    )


def _difference(repaired: str, broken: str) -> str:
    lines = difflib.unified_diff(repaired.splitlines(), broken.splitlines(), lineterm="", n=2)
    return "".join(f"{line}\n" for line in list(lines)[2:])


def index_of() -> str:
    """Return the page that lists all kinds."""
    rows = "".join(f"| [`{k.name}`]({k.name}.md) | {k.severity} | {k.wrong} |\n" for k in KINDS.values())
    return (
        "# Kinds of findings\n\n"
        "Each page says what is wrong and how to mend it, with a broken kernel, what is said of it, and the repaired one.\n"
        "`warpsmith check --explain KIND` prints the first lines.\n\n"
        f"| kind | severity | what is wrong |\n|---|---|---|\n{rows}"
    )


def pages() -> dict[Path, str]:
    """Return every page as it should be."""
    tests = mutation_tests()
    out = {PAGES / f"{k.name}.md": page_of(k, tests) for k in KINDS.values()}
    return {**out, PAGES / "index.md": index_of()}
