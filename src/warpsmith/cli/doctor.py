"""`warpsmith doctor`: what was found, its version, and how to get what was not."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import TypedDict

import click

from warpsmith import __version__
from warpsmith.base.errors import ToolError
from warpsmith.cli.output import json_option, print_json
from warpsmith.toolchain.find import PACKAGES, TOOLS, ToolName, find_tool, places

__all__ = ["command"]

LIBRARIES = ("numpy", "ml_dtypes", "click", "rich")
PURPOSE: dict[ToolName, str] = {"ptxas": "turns PTX into machine code", "nvdisasm": "lists machine code"}


class Entry(TypedDict):
    """One line of the report."""

    name: str
    found: bool
    version: str
    where: str
    advice: str


def tool_entry(name: ToolName) -> Entry:
    """Describe an external tool."""
    tool = find_tool(name)
    if tool is None:
        advice = f"pip install 'warpsmith[cuda]' installs it ({PACKAGES[name]}); it {PURPOSE[name]}"
        return Entry(name=name, found=False, version="", where="", advice=advice)
    try:
        return Entry(name=name, found=True, version=tool.version(), where=f"{tool.path} (from {tool.origin})", advice="")
    except ToolError as error:
        return Entry(name=name, found=False, version="", where=str(tool.path), advice=str(error))


def library_entry(name: str) -> Entry:
    """Describe a Python package."""
    try:
        return Entry(name=name, found=True, version=version(name), where="", advice="")
    except PackageNotFoundError:
        return Entry(name=name, found=False, version="", where="", advice=f"pip install {name}")


def report() -> list[Entry]:
    """Return everything `doctor` looks at."""
    head = [
        Entry(name="warpsmith", found=True, version=__version__, where="", advice=""),
        Entry(name="python", found=True, version=platform.python_version(), where=platform.platform(), advice=""),
    ]
    return head + [library_entry(name) for name in LIBRARIES] + [tool_entry(name) for name in TOOLS]


@click.command()
@json_option
def command(*, as_json: bool) -> None:
    """Say which tools were found, and how to get the others."""
    entries = report()
    if as_json:
        print_json({"entries": entries, "looked_in": [place.description for place in places()]})
        return
    for entry in entries:
        mark = "ok" if entry["found"] else "--"
        rest = "  ".join(part for part in (entry["version"], entry["where"], entry["advice"]) if part)
        print(f"{mark}  {entry['name']:<10} {rest}")
    if not all(entry["found"] for entry in entries):
        print("looked in: " + "; ".join(place.description for place in places()))
