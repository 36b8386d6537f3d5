"""The examples of README.md and docs/ run, and print what they say they print.

The ```python blocks of a page run in order in one namespace. A ```text block right after one is its exact output;
an info string `python no-run` marks a fragment. In a ```console block, lines that start with `$ warpsmith` run too, through
the command line's own entry point, and what follows is their output. `--regenerate` writes the outputs anew.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from warpsmith.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
PAGES = [p for p in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if "```" in p.read_text()]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    info: str
    body: str
    start: int
    """Offset of the body in the page."""
    line: int
    adjoins: bool
    """Nothing but white space stands between it and the block before."""


def blocks(text: str) -> list[Block]:
    out: list[Block] = []
    end = -1
    for m in FENCE.finditer(text):
        start = m.start("body")
        adjoins = end >= 0 and not text[end : m.start()].strip()
        out.append(Block(m["info"].strip(), m["body"], start, text.count("\n", 0, start), adjoins))
        end = m.end()
    return out


def run_python(block: Block, page: Path, namespace: dict[str, object]) -> str:
    """Run a block so that frames and findings name the page and its line."""
    code = compile("\n" * block.line + block.body, str(page.relative_to(ROOT)), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, namespace)
    return tidy(out.getvalue())


def run_console(block: Block) -> str:
    """Run each `$ warpsmith …` line; return the block with what they printed now."""
    parts = re.split(r"^(?=\$ )", block.body, flags=re.MULTILINE)
    return "".join(part if part.split()[:2] != ["$", "warpsmith"] else rerun(part.split("\n")[0]) for part in parts if part)


def rerun(command: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        main(shlex.split(command, comments=True)[2:])
    return f"{command}\n{tidy(out.getvalue())}"


def tidy(output: str) -> str:
    """Drop white space at the ends of lines, which editors drop too."""
    return "".join(f"{line.rstrip()}\n" for line in output.rstrip().split("\n")) if output.strip() else ""


def outputs(page: Path, text: str) -> list[tuple[Block, str]]:
    """Run a page; return every block that states an output, with the output of now."""
    namespace: dict[str, object] = {"__name__": "example"}
    out: list[tuple[Block, str]] = []
    printed: str | None = None
    for block in blocks(text):
        if block.info == "text" and block.adjoins and printed is not None:
            out.append((block, printed))
        elif block.info == "console":
            out.append((block, run_console(block)))
        printed = run_python(block, page, namespace) if block.info == "python" else None
    return out


def renewed(page: Path, text: str) -> str:
    """Return the page with the outputs of now."""
    for block, output in reversed(outputs(page, text)):
        text = text[: block.start] + output + text[block.start + len(block.body) :]
    return text


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples(page: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    monkeypatch.chdir(ROOT)
    text = page.read_text()
    now = renewed(page, text)
    if pytestconfig.getoption("--regenerate"):
        page.write_text(renewed(page, now))  # once more: outputs that grew have moved the lines that messages name
    else:
        assert now == text
