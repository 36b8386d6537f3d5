"""The `warpsmith` command: its verbs, and what becomes of an error."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
import traceback
from difflib import get_close_matches
from typing import TYPE_CHECKING, final

import click

from warpsmith import __version__
from warpsmith.base.errors import InternalError, PtxError, SimulationError, WarpsmithError
from warpsmith.cli.load import users_line

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["COMMANDS", "main"]

FINDINGS, BAD_INPUT, INTERNAL, INTERRUPTED, BROKEN_PIPE = 1, 2, 70, 130, 141
"""Exit statuses besides 0; the last three are those of sysexits.h and of a shell that reports a signal."""

_OF_A_STREAM = (errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EBADF, errno.EDQUOT)
"""Errors that come without a name when the standard output cannot take what is printed."""

_REPORT = "  this is a fault of warpsmith: please report it with the command, its input and the output of `warpsmith doctor`"

COMMANDS = {
    "demo": "a Hopper attention kernel on the CPU, then a broken barrier",
    "simulate": "run a kernel on the CPU, and say what is wrong with it",
    "check": "read a kernel, run it under many schedules, say what is wrong",
    "compile": "compile PTX, or a kernel written in Python, with ptxas",
    "launch": "run a kernel on the GPU",
    "study": "measure kernels beside their peers on the GPU",
    "transpile": "write PTX as Python source of the kernel language",
    "find": "list the cubins and PTX in libraries, archives and wheels",
    "extract": "write those to files of their own",
    "sass": "list machine code, search it, explain a word",
    "assemble": "make machine code of a listing, put it into a cubin",
    "probe": "derive instruction tables with the disassembler, show a word",
    "audit": "compare the decoder with nvdisasm on all code of libraries",
    "doctor": "say which tools were found, and how to get the others",
}
"""Verb -> its line in `warpsmith --help`; its code is the click command called `command` in `warpsmith.cli.<verb>`."""


@final
class _LazyGroup(click.Group):
    """A group whose commands are imported when they are called, so that `--help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"warpsmith.cli.{cmd_name}").command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; name those that are spelled alike when there is none."""
        name = args[0] if args else ""
        if name and name not in COMMANDS and not name.startswith("-"):
            close = get_close_matches(name.lower(), COMMANDS, 3, 0.6)
            close += [verb for verb in COMMANDS if verb not in close and len(name) > 2 and verb.startswith(name.lower())]
            if close:
                ctx.fail(f"No such command {name!r}. Did you mean {' or '.join(map(repr, close[:3]))}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="warpsmith")
def group() -> None:
    """Write, run, read and rewrite GPU machine code.

    Exit status: 0 done, 1 findings of severity error, 2 bad input.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; no input of any kind leads to a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a line of the user's file may hold what the terminal has no letters for
            stream.reconfigure(errors="backslashreplace")
    try:
        return group.main(args=arguments, prog_name="warpsmith", standalone_mode=False) or 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _complain("interrupted", INTERRUPTED)
    except click.ClickException as error:
        error.show()
        return BAD_INPUT
    except SimulationError as error:
        print(error)
        return FINDINGS
    except PtxError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    except InternalError as error:
        return _complain(f"internal error: {error}\n{_REPORT}", INTERNAL)
    except WarpsmithError as error:
        return _complain(f"error: {error}", BAD_INPUT)
    except BrokenPipeError:
        return _unread()
    except SystemExit as stop:  # of a Python file that was run, or of rich, which knows no better where a pipe is broken
        where = users_line(stop)
        return (
            _complain(f"error: {where}: the file ends the program: sys.exit({stop.code!r})", BAD_INPUT) if where else _unread()
        )
    except OSError as error:
        return _complain(f"error: {_describe(error)}", BAD_INPUT)
    except MemoryError:
        return _complain("error: out of memory; use a smaller grid or smaller arrays", BAD_INPUT)
    except Exception as error:
        if where := users_line(error):
            return _complain(f"error: {where}: {type(error).__name__}: {error}", BAD_INPUT)
        return _complain(_internal(error), INTERNAL)


def _unread() -> int:
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (what is buffered has nowhere to go at exit)
    return BROKEN_PIPE


def _complain(message: str, status: int) -> int:
    print(f"warpsmith: {message}", file=sys.stderr)
    return status


def _describe(error: OSError) -> str:
    if error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return f"the output cannot be written: {error.strerror}" if error.errno in _OF_A_STREAM else str(error)


def _internal(error: Exception) -> str:
    """Describe a fault of ours in three lines; the whole traceback on request."""
    if os.environ.get("WARPSMITH_TRACEBACK"):
        traceback.print_exception(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"internal error: {type(error).__name__}: {error}\n"
        f"  at {os.path.basename(os.path.dirname(last.filename))}/{os.path.basename(last.filename)}:{last.lineno}\n"
        f"{_REPORT}\n"
        "  (WARPSMITH_TRACEBACK=1 shows where it happened)"
    )
