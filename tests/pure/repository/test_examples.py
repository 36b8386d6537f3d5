"""The examples of README.md and docs/ run, and print what they say they print.

The ```python blocks of a page run in order in one namespace. A ```text block right after one is its exact output;
an info string `python no-run` marks a fragment. In a ```console block, lines that start with `$ warpsmith` run too, through
the command line's own entry point, and what follows is their output.
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
    line: int
    adjoins: bool
    """Nothing but white space between it and the block before."""


def blocks(text: str) -> list[Block]:
    out: list[Block] = []
    end = -1
    for m in FENCE.finditer(text):
        line = text.count("\n", 0, m.start("body"))
        out.append(Block(m["info"].strip(), m["body"], line, end >= 0 and not text[end : m.start()].strip()))
        end = m.end()
    return out


def run_python(block: Block, page: Path, namespace: dict[str, object]) -> str:
    """Run a block so that frames and findings name the page and its line."""
    code = compile("\n" * block.line + block.body, str(page.relative_to(ROOT)), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, namespace)
    return out.getvalue()


def run_console(block: Block) -> None:
    """Run each `$ warpsmith …` line and compare what follows it with what it printed."""
    for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        words = shlex.split(command, comments=True)
        if words[0] != "warpsmith":
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            main(words[1:])
        assert out.getvalue().rstrip() == expected.rstrip(), command


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    namespace: dict[str, object] = {"__name__": "example"}
    printed: str | None = None
    for block in blocks(page.read_text()):
        if block.info == "python":
            printed = run_python(block, page, namespace)
        elif block.info == "console":
            run_console(block)
        elif block.info == "text" and block.adjoins and printed is not None:
            assert printed.rstrip() == block.body.rstrip(), f"{page.name}:{block.line}"
        if block.info != "python":
            printed = None
