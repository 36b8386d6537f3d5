"""5,000 random instructions, right and wrong ones: our checker accepts and rejects what ptxas does.

Half are made as the tables declare them, on an architecture drawn at random. Half are spoiled: another register type, a
constant, an operand more or less, a word changed, lost or added, a vector of another length. One draw is of all rows alike,
and one of each family of instructions with many forms. What is left of disagreement is listed by its kind, with the reason,
in `disagreements.txt`; every draw must be explained by that list. `python test_verdicts.py COUNT SEED [OPCODE …]` prints what
another draw finds.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from verdict_maker import DECLARATIONS, Maker
from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.check import check
from warpsmith.base.errors import PtxError
from warpsmith.cubin import open as cubin_open
from warpsmith.toolchain import find_tool

FAMILIES = (
    ("tcgen05",),
    ("wgmma",),
    ("mma", "wmma"),
    ("cp", "multimem"),
    ("cvt",),
    ("ld", "st", "atom", "red"),
    ("mbarrier", "fence", "bar", "barrier", "fabric", "tensormap"),
    ("mov", "set", "setp", "selp", "shfl", "vote", "redux", "prmt", "bfe", "add", "sub", "fma", "min", "max"),
    ("tex", "tld4", "txq", "suld", "sust", "sured", "suq"),
)
BEFORE = ".global .align 64 .b8 g[256]; .const .align 16 .b8 cc[64]; .shared .align 128 .b8 s[256];"
PARAMETERS = ".param .align 16 .b8 q[64]"
VERSION = "9.5"
CRASHED = "unplaced: "
"""ptxas ended without an error, or not at all: no verdict (vectors of eight 8-bit elements, some vector registers)."""
LISTED = Path(__file__).with_name("disagreements.txt")


# --- judging --------------------------------------------------------------------------------------------------------


def module_text(lines: list[str], arch: str) -> tuple[str, int]:
    """Return a kernel with one instruction a line, and the number of the first such line."""
    head = (
        f".version {VERSION}\n.target {arch}\n.address_size 64\n{BEFORE}\n"
        f".visible .entry k({PARAMETERS})\n{{\n{DECLARATIONS}\nL0:\n"
    )
    return head + "".join(f"{{ {line}; }}\n" for line in lines) + "ret;\n}\n", head.count("\n") + 1


def ptxas_verdicts(lines: list[str], arch: str, folder: Path) -> list[str]:
    """Return ptxas's complaint about each line, '' where it has none."""
    tool = find_tool("ptxas")
    assert tool
    said = [""] * len(lines)
    alive = list(range(len(lines)))
    source = folder / "v.ptx"
    while alive:
        text, first = module_text([lines[k] for k in alive], arch)
        source.write_text(text, "utf-8")
        command = [str(tool.path), "-arch", arch, "-O0", str(source), "-o", str(folder / "v.cubin")]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60 + 0.2 * len(alive), check=False)
        except subprocess.TimeoutExpired:  # some instructions keep ptxas busy for ever
            return _halved(said, lines, alive, arch, folder, "")
        if done.returncode == 0:
            return said
        bad: set[int] = set()
        for m in re.finditer(r"line (\d+); (?:error|fatal)\s*: (.*)", done.stderr + done.stdout):
            at = int(m[1]) - first
            if 0 <= at < len(alive):
                said[alive[at]] = said[alive[at]] or m[2]
                bad.add(alive[at])
        if not bad:
            return _halved(said, lines, alive, arch, folder, done.stderr or done.stdout)
        alive = [k for k in alive if k not in bad]
    return said


def _halved(said: list[str], lines: list[str], alive: list[int], arch: str, folder: Path, message: str) -> list[str]:
    """Find by halving which lines make ptxas fail without naming a line."""
    if len(alive) == 1:
        failed = re.search(r"error|fatal", message)
        said[alive[0]] = CRASHED + (message.strip()[-160:] if failed else "")
        return said
    middle = len(alive) // 2
    for part in (alive[:middle], alive[middle:]):
        for k, v in zip(part, ptxas_verdicts([lines[k] for k in part], arch, folder), strict=True):
            said[k] = v
    return said


# --- comparing ------------------------------------------------------------------------------------------------------


def our_verdict(line: str, arch: str) -> str:
    """Return our first complaint about an instruction, '' when there is none."""
    try:
        problems = check(parse(module_text([line], arch)[0]))
    except PtxError as error:
        problems = list(error.problems)
    return problems[0].message if problems else ""


def disagreements(count: int, seed: int, opcodes: Sequence[str] = ()) -> tuple[list[tuple[str, str, str, str]], int]:
    """Return (arch, instruction, ptxas, ours) where only one complains, and how many instructions ptxas accepts."""
    maker = Maker(seed, opcodes)
    by_arch: dict[str, list[str]] = defaultdict(list)
    for _ in range(count):
        arch, line = maker.instruction()
        by_arch[arch].append(line)
    out: list[tuple[str, str, str, str]] = []
    accepted = 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        for arch, lines in by_arch.items():
            for line, theirs in zip(lines, ptxas_verdicts(lines, arch, folder), strict=True):
                ours = our_verdict(line, arch)
                accepted += not theirs
                if bool(ours) != bool(theirs):
                    alone = ptxas_verdicts([line], arch, folder)[0]  # among others ptxas at times names a wrong line
                    if bool(ours) != bool(alone) and alone != CRASHED:
                        out.append((arch, line, alone, ours))
    return out, accepted


def reasons() -> list[tuple[str, re.Pattern[str], str, str]]:
    """Read the list: who rejects (`ours` or `ptxas`), a pattern of the instruction and messages, the reason, an example."""
    lines = [line for line in LISTED.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    out: list[tuple[str, re.Pattern[str], str, str]] = []
    for line, example in zip(lines[::2], lines[1::2], strict=True):
        who, pattern, reason = re.split(r"\s{2,}", line, maxsplit=2)
        assert who in ("ours", "ptxas")
        assert example.startswith("    ")
        out.append((who, re.compile(pattern), reason, example.strip()))
    return out


def unexplained(found: list[tuple[str, str, str, str]]) -> list[tuple[str, str, str, str]]:
    """Return the disagreements that the list does not explain."""
    listed = reasons()

    def listed_for(who: str, arch: str, line: str, message: str) -> bool:
        return any(w == who and p.search(f"{arch} {line} || {message}") for w, p, *_ in listed)

    def right(arch: str, line: str) -> bool:
        ours = our_verdict(line, arch)
        return not ours or listed_for("ours", arch, line, ours)

    def explained(entry: tuple[str, str, str, str]) -> bool:
        arch, line, theirs, ours = entry
        who = "ptxas" if theirs else "ours"
        return listed_for(who, arch, line, theirs or ours) or (who == "ours" and passed_over(arch, line, right))

    return [entry for entry in found if not explained(entry)]


def passed_over(arch: str, line: str, right: Callable[[str, str], bool]) -> bool:
    """Say whether ptxas passes over a word of the mnemonic: without it the instruction is `right`, and the code is the same."""
    mnemonic, _, operands = line.partition(" ")
    words = mnemonic.split(".")
    for k in range(1, len(words)):
        shorter = ".".join(words[:k] + words[k + 1 :]) + " " + operands
        if right(arch, shorter) and (code := code_of(shorter, arch)) and code == code_of(line, arch):
            return True
    return False


def code_of(line: str, arch: str) -> bytes:
    """Return the machine code of a kernel of one instruction, empty when ptxas refuses it."""
    tool = find_tool("ptxas")
    assert tool
    with TemporaryDirectory() as name:
        source, cubin = Path(name, "c.ptx"), Path(name, "c.cubin")
        source.write_text(module_text([line], arch)[0], "utf-8")
        command = [str(tool.path), "-arch", arch, "-O1", str(source), "-o", str(cubin)]
        if subprocess.run(command, capture_output=True, timeout=300, check=False).returncode:
            return b""
        return cubin_open(cubin).functions["k"].code


def test_verdicts_agree_with_ptxas() -> None:
    found, accepted = disagreements(5000, 3)
    assert 1200 < accepted < 3800
    assert len(found) <= 60
    assert unexplained(found) == []


@pytest.mark.parametrize("family", FAMILIES, ids=" ".join)
def test_verdicts_agree_within_a_family(family: tuple[str, ...]) -> None:
    found, accepted = disagreements(1500, 11, family)
    assert 300 < accepted < 1300
    assert unexplained(found) == []


def test_every_listed_reason_is_of_use() -> None:
    """Each line of the list explains what the example below it shows."""
    for who, pattern, reason, example in reasons():
        arch, _, line = example.partition(" ")
        with TemporaryDirectory() as name:
            theirs, ours = ptxas_verdicts([line], arch, Path(name))[0], our_verdict(line, arch)
        assert bool(theirs) != bool(ours), (reason, theirs, ours)
        assert who == ("ptxas" if theirs else "ours")
        assert pattern.search(f"{arch} {line} || {theirs or ours}"), (reason, theirs or ours)


if __name__ == "__main__":
    everything, taken = disagreements(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    rest = unexplained(everything)
    print(f"{sys.argv[1]} instructions, ptxas accepts {taken}; {len(everything)} disagreements, {len(rest)} not listed")
    for entry in sorted(rest, key=lambda e: e[1]):
        print(f"{entry[0]} | {entry[1][:200]} || ptxas: {entry[2][:90] or 'accepts'} || ours: {entry[3][:120] or 'accepts'}")
