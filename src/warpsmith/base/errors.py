"""The exceptions of Warpsmith. All derive from `WarpsmithError`; a message is what, where, what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.base.findings import Finding
    from warpsmith.base.source import Span

__all__ = [
    "CapabilityError",
    "CompilationError",
    "CubinError",
    "DeclarationError",
    "InputError",
    "InternalError",
    "KernelError",
    "LaunchError",
    "PtxError",
    "SimulationError",
    "ToolError",
    "WarpsmithError",
]


_SHOWN = 50


class WarpsmithError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(WarpsmithError):
    """The caller gave something unusable: a missing file, a wrong argument, an unknown kernel."""


class InternalError(WarpsmithError):
    """Warpsmith contradicts itself: no input can be the cause. The message says where the run stood; please report it."""


class CapabilityError(WarpsmithError):
    """What was asked for is recognised and refused by name, because it is not modelled."""


class CubinError(WarpsmithError):
    """An ELF cubin, a fat binary or a container around them is not accepted.

    `.offset` is the byte it was seen at (from the start of `.file`, or of the section where one is named), `.section` the
    section's name, `.file` what was read; each may be None.
    """

    def __init__(self, message: str, *, offset: int | None = None, section: str | None = None, file: str | None = None) -> None:
        self.message, self.offset, self.section, self.file = message, offset, section, file
        super().__init__(message)

    def __str__(self) -> str:
        where = [f"byte {self.offset:#x}"] if self.offset is not None else []
        where += [f"section {self.section!r}"] if self.section is not None else []
        text = f"{self.message} ({' of '.join(where)})" if where else self.message
        return f"{self.file}: {text}" if self.file else text


class DeclarationError(WarpsmithError):
    """A row of an instruction table contradicts the legend or another row."""


class ToolError(WarpsmithError):
    """An external tool is missing or failed."""


class LaunchError(WarpsmithError):
    """The CUDA driver refused a launch, or a kernel failed on the GPU. `.code` is the CUresult, 0 where none came."""

    def __init__(self, message: str, code: int = 0) -> None:
        self.code = code
        super().__init__(message)


class CompilationError(ToolError):
    """ptxas rejected a program. `.findings` lists its complaints at the user's lines, `.log` is what it printed."""

    def __init__(self, message: str, findings: Sequence[Finding], log: str) -> None:
        self.findings = tuple(findings)
        self.log = log
        super().__init__("\n".join([message, *(str(f) for f in self.findings)]))


class KernelError(WarpsmithError):
    """A DSL call is wrong; the message carries the user's Python line."""


class PtxError(WarpsmithError):
    """PTX text is not accepted. `.problems` lists every problem found, in source order; the message shows the first 50."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(p) for p in self.problems[:_SHOWN]]
        if len(self.problems) > _SHOWN:
            lines.append(f"… and {len(self.problems) - _SHOWN:,} more problems")
        super().__init__("\n".join(lines))


class SimulationError(WarpsmithError):
    """A simulated launch had findings of severity error. `.findings` lists them."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(str(f) for f in self.findings))


class Problem:
    """One complaint about source text: message, place and a hint what to write instead."""

    __slots__ = ("hint", "message", "span")

    def __init__(self, message: str, span: Span | None, hint: str = "") -> None:
        self.message = message
        self.span = span
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"{self.span}: error: {self.message}" if self.span else f"error: {self.message}"]
        if self.span and (caret := self.span.caret()):
            lines.append(caret)
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)
