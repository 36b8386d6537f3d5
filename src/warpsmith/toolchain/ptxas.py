"""Compile PTX to a cubin with ptxas, through the cache."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from warpsmith.base.arch import parse_arch
from warpsmith.base.errors import CompilationError, InputError, ToolError
from warpsmith.base.findings import Finding
from warpsmith.toolchain.cache import CubinCache, Entry, default_cache
from warpsmith.toolchain.find import Tool, require_tool
from warpsmith.toolchain.log import Resources, parse_log
from warpsmith.toolchain.messages import findings_of
from warpsmith.toolchain.run import run_tool, signal_name, workspace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warpsmith.base.source import Place

__all__ = ["Compilation", "compile_ptx", "target_of"]

_TARGET = re.compile(r"^\s*\.target\s+(sm_\w+)", re.MULTILINE)


@final
@dataclass(frozen=True, slots=True)
class Compilation:
    """What ptxas made of a PTX text."""

    cubin: bytes
    arch: str
    log: str
    """What ptxas printed (`-v`)."""
    resources: dict[str, Resources]
    """Function -> what it takes."""
    findings: tuple[Finding, ...] = field(default=())
    """Notes: spills, setmaxnreg ignored, wgmma serialised, … at the user's lines."""
    cached: bool = False
    """Whether the cubin came from the cache."""


def target_of(text: str) -> str:
    """Return the architecture of a PTX text's `.target`; raise `InputError` if it names none."""
    m = _TARGET.search(text)
    if not m:
        raise InputError("the PTX text has no .target directive; it starts with .version, .target and .address_size")
    return str(parse_arch(m[1]))


def compile_ptx(
    text: str,
    arch: str | None = None,
    options: Sequence[str] = (),
    *,
    places: Mapping[int, Place] | None = None,
    name: str = "<ptx>",
    cache: CubinCache | None = None,
    timeout: float = 300.0,
) -> Compilation:
    """Return the cubin of `text` for `arch` (by default that of `.target`).

    `options` are further arguments of ptxas, e.g. `["--fmad=false", "-O1"]`; line information is kept unless they
    ask for `-g`. `places` maps PTX lines to the user's (by default `.loc` does), `name` is what the PTX itself is
    called in messages. Raises `CompilationError` with findings if ptxas rejects the text, `ToolError` if ptxas is
    missing, hangs or crashes.
    """
    arch = str(parse_arch(arch)) if arch else target_of(text)
    tool = require_tool("ptxas")
    arguments = ["-v", f"--gpu-name={arch}", *(() if "-g" in options else ("--generate-line-info",)), *options]
    cache = cache or default_cache()
    data = text.encode("utf-8", "surrogateescape")
    key = cache.key("ptxas", tool.version(), *arguments, data)
    entry = cache.get(key)
    cached = entry is not None
    trouble = ""
    if entry is None:
        entry = _run(tool, data, arguments, timeout)
        if entry.cubin:
            cache.put(key, entry)
            trouble = cache.trouble
    log = parse_log(entry.log)
    findings = findings_of(log, text, places, name)
    if not entry.cubin:
        raise _rejection(name, findings, entry.log)
    if trouble:
        findings += (Finding("cache", "note", trouble, repair="Set WARPSMITH_CACHE_DIR to a folder that can be written."),)
    return Compilation(entry.cubin, arch, entry.log, log.resources, findings, cached)


def _run(tool: Tool, data: bytes, arguments: list[str], timeout: float) -> Entry:
    """Run ptxas; an entry with an empty cubin is a rejection."""
    with workspace() as folder:
        try:
            (folder / "kernel.ptx").write_bytes(data)
        except OSError as error:
            raise ToolError(f"the PTX cannot be written for ptxas: {error}; set TMPDIR to a folder with space") from error
        done = run_tool(tool, [*arguments, "kernel.ptx", "-o", "kernel.cubin"], folder, timeout=timeout)
        output = folder / "kernel.cubin"
        log = done.out + done.err
        if done.status == 0 and output.is_file():
            return Entry(output.read_bytes(), log)
    if not any(m.level in ("error", "fatal") for m in parse_log(log).messages):
        ended = f"was ended by {signal_name(-done.status)}" if done.status < 0 else f"failed (exit status {done.status})"
        raise ToolError(f"ptxas {ended} and said why only as: {log.strip()[-500:]!r}; run it by hand: {tool.path}")
    return Entry(b"", log)


def _rejection(name: str, findings: Sequence[Finding], log: str) -> CompilationError:
    errors = [f for f in findings if f.severity == "error"]
    return CompilationError(f"ptxas rejects {name}: {len(errors)} error{'s' if len(errors) > 1 else ''}", errors, log)
