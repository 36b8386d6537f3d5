"""`warpsmith study`: measure kernels beside their peers on the GPU of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from warpsmith.cli.progress import progress_bar
from warpsmith.study.attention.cells import CELLS
from warpsmith.study.attention.study import Options, measure

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["command"]


@click.group()
def command() -> None:
    """Measure kernels beside their peers on the GPU of this machine."""


@command.command(short_help="Attention forward, beside FlashAttention-2 and -3 and cuDNN.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default="attention-study", show_default=True,
              help="Folder of the results; a second run goes on where the first stopped.")  # fmt: skip
@click.option("--only", default="", metavar="TEXT", help="Cells whose name holds this text, such as `D64 causal`.")
@click.option("--cells", type=click.Choice(list(CELLS)), default="main", show_default=True,
              help="Head dimensions 64 and 128, other dimensions, or cells that are also measured packed.")  # fmt: skip
@click.option(
    "--dtype", type=click.Choice(["f16", "bf16", "e4m3"]), default="bf16", show_default=True, help="Inputs of our kernel."
)
@click.option("--repeat", type=click.IntRange(min=1), default=30, show_default=True, help="Replays of each graph.")
@click.option("--no-peers", is_flag=True, help="Measure our kernel alone.")
@click.option("--variant", "variants", multiple=True, metavar="NAME=VALUE,…", help="Options of our kernel; each is measured.")
def attention(*, no_peers: bool, **options: Any) -> int:
    """Attention forward: ours, FlashAttention-2, cuDNN and FlashAttention-3, where they are installed.

    Every kernel is compared with float64 attention first and is not timed when it is wrong. Writes attention.jsonl, .md, .svg.
    """
    say: Callable[[str], None] = Console(stderr=True, highlight=False, soft_wrap=True, markup=False).print
    with progress_bar("attention") as progress:
        table = measure(Options(peers=not no_peers, **options), say, progress)
    print(table, end="")
    return 0
