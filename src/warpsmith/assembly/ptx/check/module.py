"""The walk over a module: header, items, scopes, statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.check.calls import check_call
from warpsmith.assembly.ptx.check.declarations import declare_parameter, declare_registers, declare_variable
from warpsmith.assembly.ptx.check.hints import check_hints
from warpsmith.assembly.ptx.check.instruction import check_instruction
from warpsmith.assembly.ptx.check.symbols import Scope, Symbol
from warpsmith.assembly.ptx.tree import (
    AddressOperand,
    BranchTargets,
    CallPrototype,
    Directive,
    Dwarf,
    FileDirective,
    Function,
    Instruction,
    Label,
    Name,
    RegisterDeclaration,
    Statement,
    Variable,
)
from warpsmith.assembly.ptx.tree import Scope as Block
from warpsmith.base.arch import ARCHITECTURES, first_ptx_version
from warpsmith.base.errors import Problem

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.module import Module

__all__ = ["LATEST_PTX", "check"]

LATEST_PTX = (9, 5)


def check(module: Module) -> list[Problem]:
    """Return every problem of `module`, in source order as far as places are known; an empty list for a good one."""
    checker = _Checker(module)
    checker.run()
    return checker.problems


@final
class _Checker:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.version = module.version
        self.arch = module.arch if module.target else ""
        self.problems: list[Problem] = []
        self.samplers = "texmode_independent" in module.target
        self.globals = Scope()
        self.entry = False
        """The body being checked is an entry's."""

    def run(self) -> None:
        if not self._header():
            return
        dwarf = False
        for item in self.module.items:
            if isinstance(item, Function):
                self._function(item)
            elif isinstance(item, Variable):
                self.problems += declare_variable(item, self.globals, module=True, samplers=self.samplers)
            elif isinstance(item, Directive) and item.name == "alias":
                self._alias(item)
            elif isinstance(item, Dwarf) and self.version >= (2, 0) and not dwarf:
                dwarf = True
                text = f"PTX {self.version[0]}.{self.version[1]} does not have `@@DWARF`"
                self.problems.append(Problem(text, item.span, "since PTX 2.0 debug data stands in `.section .name { … }`"))
            elif isinstance(item, FileDirective) and not item.name.isascii():
                self.problems.append(Problem(f"file name {item.name!r} is not ASCII, which ptxas refuses", item.span))

    def _header(self) -> bool:
        """Check `.version` and `.target`; nothing else can be judged without a known architecture."""
        if self.arch not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            self.problems.append(Problem(f"unknown target `{self.arch}`", self.module.span, f"known are {known}"))
            return False
        if self.version > LATEST_PTX:
            text = f"PTX {self.version[0]}.{self.version[1]} is not known; the newest is {LATEST_PTX[0]}.{LATEST_PTX[1]}"
            self.problems.append(Problem(text, self.module.span, "write the version that the program was written for"))
        first = first_ptx_version(self.arch)
        if self.version < first:
            text = f"target {self.arch} needs PTX {first[0]}.{first[1]}, the module is {self.version[0]}.{self.version[1]}"
            self.problems.append(Problem(text, self.module.span, f"write `.version {first[0]}.{first[1]}` or later"))
        if self.module.address_size not in (32, 64):
            text = f"address size {self.module.address_size} is neither 32 nor 64"
            self.problems.append(Problem(text, self.module.span, "write `.address_size 64`"))
        return True

    def _alias(self, item: Directive) -> None:
        new, old = item.arguments
        for name in (new, old):
            symbol = self.globals(name)
            if symbol is None or symbol.kind != "function":
                self.problems.append(Problem(f"`.alias` of `{name}`, which is no function declared so far", item.span))

    def _function(self, function: Function) -> None:
        known = self.globals.own(function.name)
        if known is None:
            self.globals.declare(function.name, Symbol("function", signature=function))
        elif known.kind != "function" or not isinstance(known.signature, Function):
            self.problems.append(Problem(f"`{function.name}` is already a {known.kind}", function.span))
        elif known.signature.body is not None and function.body is not None:
            self.problems.append(Problem(f"function `{function.name}` is defined twice", function.span))
        else:
            if _shapes(known.signature) != _shapes(function):
                text = f"`{function.name}` was declared with other parameters before"
                self.problems.append(Problem(text, function.span))
            if function.body is not None:
                known.signature = function
        self.problems += check_hints(function, self.version, self.arch)
        if len(function.returns) > 1 and any(p.space == "param" for p in function.returns):
            hint = "return them in .reg, or one .param array of bytes"
            self.problems.append(Problem(f"`{function.name}` returns several .param", function.span, hint))
        if function.body is None:
            return
        scope = Scope(self.globals)
        for parameter in function.returns:
            self.problems += declare_parameter(parameter, scope, entry=False, result=True)
        for parameter in function.parameters:
            if parameter.type == "samplerref" and not self.samplers:
                text = f"`{parameter.name}`: samplers of their own need `.target texmode_independent`"
                self.problems.append(Problem(text, parameter.span))
            self.problems += declare_parameter(parameter, scope, entry=function.kind == "entry", result=False)
        self.entry = function.kind == "entry"
        self._statements(function.body, scope)

    # --- bodies -----------------------------------------------------------------------------------------------------

    def _labels(self, body: list[Statement], scope: Scope) -> None:
        """Declare the labels of a block: they may be used before they stand, those of tables and prototypes only after."""
        for k, statement in enumerate(body):
            after = body[k + 1] if k + 1 < len(body) else None
            if isinstance(statement, Label) and not isinstance(after, (BranchTargets, CallPrototype)):
                self._label(statement, Symbol("label"), scope)

    def _label(self, label: Label, symbol: Symbol, scope: Scope) -> None:
        if not scope.declare(label.name, symbol):
            self.problems.append(Problem(f"label `{label.name}` stands twice in this scope", label.span))

    def _statements(self, body: list[Statement], scope: Scope) -> None:
        self._labels(body, scope)
        problems, version, arch = self.problems, self.version, self.arch
        before: Statement | None = None
        for statement in body:
            if type(statement) is Instruction:
                found = check_instruction(statement, scope, version, arch)
                if found:
                    problems += self._hinted(statement, found, scope)
                if statement.opcode == "call":
                    problems += check_call(statement, scope)
                elif self.entry and ".param::func" in statement.mnemonic:
                    problems += _parameter_by_register(statement, scope)
            elif isinstance(statement, RegisterDeclaration):
                problems += declare_registers(statement, scope)
            elif isinstance(statement, Variable):
                problems += declare_variable(statement, scope, module=False)
            elif isinstance(statement, Block):
                self._statements(statement.body, Scope(scope))
            elif isinstance(statement, BranchTargets):
                if isinstance(before, Label):
                    self._label(before, Symbol("targets"), scope)
                self._targets(statement, scope)
            elif isinstance(statement, CallPrototype) and isinstance(before, Label):
                self._label(before, Symbol("prototype", signature=statement), scope)
            before = statement

    @staticmethod
    def _hinted(instruction: Instruction, problems: list[Problem], scope: Scope) -> list[Problem]:
        """Add the nearest declared name to complaints about undeclared ones."""
        for problem in problems:
            if "not declared" in problem.message and not problem.hint:
                name = problem.message.split("`")[-2]
                problem.hint = scope.near(name)
            elif "not a label of" in problem.message and not problem.hint:
                for operand in instruction.operands:
                    if isinstance(operand, Name) and scope(operand.name) is None:
                        problem.hint = scope.near(operand.name)
        return problems

    def _targets(self, targets: BranchTargets, scope: Scope) -> None:
        wanted = "label" if targets.kind == "branchtargets" else "function"
        for name in targets.targets:
            symbol = scope(name)
            if symbol is None or symbol.kind != wanted:
                self.problems.append(Problem(f"`{name}` in .{targets.kind} is not a {wanted}", targets.span, scope.near(name)))


def _parameter_by_register(instruction: Instruction, scope: Scope) -> list[Problem]:
    """An entry names the parameters of the functions it calls; only in functions their addresses stand in registers."""
    for operand in instruction.operands:
        if isinstance(operand, AddressOperand) and isinstance(operand.base, Name):
            symbol = scope(operand.base.name)
            if symbol is not None and symbol.kind == "register":
                text = f"`{instruction.mnemonic}` in an entry by the register `{operand.base.name}`"
                return [Problem(text, instruction.span, "name the .param variable")]
    return []


def _shapes(function: Function) -> list[tuple[object, ...]]:
    """Return what declarations of one function must have in common."""
    return [
        (k, p.space, p.type, p.vector, tuple(p.shape))
        for k, parameters in enumerate((function.returns, function.parameters))
        for p in parameters
    ]
