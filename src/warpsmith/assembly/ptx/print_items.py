"""Print functions, declarations and directives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.print_operands import print_instruction
from warpsmith.assembly.ptx.tree import (
    BranchTargets,
    CallPrototype,
    Comment,
    Directive,
    Dwarf,
    FileDirective,
    Function,
    Initializer,
    Instruction,
    Item,
    Label,
    Loc,
    Parameter,
    Pragma,
    RegisterDeclaration,
    Scope,
    Section,
    Statement,
    Variable,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["print_item", "print_statement"]


def print_item(item: Item, out: list[str], *, locations: bool = True) -> None:
    """Append the lines of a module item to `out`."""
    if isinstance(item, Function):
        _function(item, out, locations)
    elif isinstance(item, FileDirective):
        times = "" if item.timestamp is None else f", {item.timestamp}, {item.size}"
        out.append(f'.file\t{item.index} "{item.name}"{times}')
    elif isinstance(item, Section):
        out.append(f".section\t{item.name}\n{{{item.text}}}")
    elif isinstance(item, Directive):
        out.append(f"{_directive(item)};")
    else:
        out.append(_simple(item))


def _function(function: Function, out: list[str], locations: bool) -> None:
    head = f".{function.linkage} " if function.linkage else ""
    head += f".{function.kind} " + _attributes(function.attributes)
    if function.returns:
        head += f"({', '.join(_parameter(p) for p in function.returns)}) "
    head += function.name
    if function.parameters:
        head += "(\n\t" + ",\n\t".join(_parameter(p) for p in function.parameters) + "\n)"
    elif function.kind == "func":
        head += "()"
    out.append("")
    out.append(head)
    out += [_simple(d) for d in function.directives]
    if function.body is None:
        out.append(";")
        return
    out.append("{")
    _statements(function.body, out, "\t", locations)
    out.append("}")


def _statements(body: list[Statement], out: list[str], indent: str, locations: bool) -> None:
    for statement in body:
        if type(statement) is Instruction:
            out.append(indent + print_instruction(statement))
        elif type(statement) is Label:
            out.append(f"{statement.name}:")
        elif type(statement) is Scope:
            out.append(indent + "{")
            _statements(statement.body, out, indent + "\t" if len(indent) < 8 else indent, locations)
            out.append(indent + "}")
        elif locations or type(statement) is not Loc:
            out.append(indent + _simple(statement))


def print_statement(statement: Statement) -> str:
    """Return the text of one statement; a scope takes several lines."""
    out: list[str] = []
    _statements([statement], out, "", True)
    return "\n".join(out)


def _simple(node: Statement | Item) -> str:
    return _PRINTERS[type(node)](node)


def _loc(loc: Loc) -> str:
    text = f".loc\t{loc.file} {loc.line} {loc.column}"
    if loc.function_name:
        text += f", function_name {loc.function_name}"
    if loc.inlined_at is not None:
        text += ", inlined_at {} {} {}".format(*loc.inlined_at)
    return text


def _pragma(pragma: Pragma) -> str:
    return ".pragma " + ", ".join(f'"{s}"' for s in pragma.strings) + ";"


def _registers(declaration: RegisterDeclaration) -> str:
    vector = f".v{declaration.vector} " if declaration.vector > 1 else ""
    names = ", ".join(name if count is None else f"{name}<{count}>" for name, count in declaration.names)
    return f".reg {vector}.{declaration.type} \t{names};"


def _attributes(attributes: list[str]) -> str:
    return f".attribute({', '.join(attributes)}) " if attributes else ""


def _shape(shape: list[int | None]) -> str:
    return "".join("[]" if n is None else f"[{n}]" for n in shape)


def _variable(variable: Variable) -> str:
    text = f".{variable.linkage} " if variable.linkage else ""
    text += f".{variable.space} " + _attributes(variable.attributes)
    if variable.align is not None:
        text += f".align {variable.align} "
    if variable.vector > 1:
        text += f".v{variable.vector} "
    text += f".{variable.type} " + ", ".join(_declarator(v) for v in [variable, *variable.more])
    return text + ";"


def _declarator(variable: Variable) -> str:
    text = variable.name
    if variable.count is not None:
        text += f"<{variable.count}>"
    text += _shape(variable.shape)
    if variable.initializer is not None:
        text += f" = {_initializer(variable.initializer)}"
    return text


def _initializer(value: Initializer) -> str:
    text = value.text
    if value.leaves is not None:
        text = f"{{{', '.join(_initializer(leaf) for leaf in value.leaves)}}}"
    return f"{value.name} = {text}" if value.name else text


def _parameter(parameter: Parameter) -> str:
    text = f".{parameter.space} " + "".join(f"{q} " for q in parameter.qualifiers)
    if parameter.pointer is None and parameter.align is not None:
        text += f".align {parameter.align} "
    if parameter.vector > 1:
        text += f".v{parameter.vector} "
    text += f".{parameter.type} "
    if parameter.pointer is not None:
        space, align = parameter.pointer
        text += ".ptr " + (f".{space} " if space else "") + ("" if align is None else f".align {align} ")
    return text + parameter.name + _shape(parameter.shape)


def _targets(targets: BranchTargets) -> str:
    return f".{targets.kind} {', '.join(targets.targets)};"


def _prototype(prototype: CallPrototype) -> str:
    text = ".callprototype "
    if prototype.returns:
        text += f"({', '.join(_parameter(p) for p in prototype.returns)}) "
    text += f"{prototype.name} ({', '.join(_parameter(p) for p in prototype.parameters)})"
    return text + "".join(f" {_directive(d)}" for d in prototype.directives) + ";"


def _directive(directive: Directive) -> str:
    return f".{directive.name}" + (f" {', '.join(directive.arguments)}" if directive.arguments else "")


def _dwarf(dwarf: Dwarf) -> str:
    return f"@@DWARF .{dwarf.kind}\t{', '.join(dwarf.arguments)}"


def _comment(comment: Comment) -> str:
    return "\n".join(f"// {line}" for line in comment.text.split("\n"))


_PRINTERS: dict[type, Callable[[Any], str]] = {
    Loc: _loc,
    Pragma: _pragma,
    RegisterDeclaration: _registers,
    Variable: _variable,
    BranchTargets: _targets,
    CallPrototype: _prototype,
    Directive: _directive,
    Dwarf: _dwarf,
    Comment: _comment,
}
