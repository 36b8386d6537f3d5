"""The tree of a PTX module. It alone is what the printer prints: an edit of the tree shows in the text.

Nodes are plain mutable objects without behaviour. `span` points into the source text for parsed trees and is
None for built ones; operands of common instructions carry none (`spans.operand_spans` finds them again from the
instruction's). Spans and places take no part in comparison: equal trees print equal text.
Statement lists (`Module.items`, `Scope.body`, `Function.body`) are ordinary lists.

Names follow the PTX ISA manual: chapter 4 (syntax), 5 (state spaces, types, variables), 6 (operands), 11 (directives).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from warpsmith.base.source import Place, Span

__all__ = [
    "AddressOperand",
    "BranchTargets",
    "CallArguments",
    "CallPrototype",
    "Comment",
    "Directive",
    "Dwarf",
    "FileDirective",
    "Function",
    "Immediate",
    "Initializer",
    "Instruction",
    "Item",
    "Label",
    "Loc",
    "Name",
    "Operand",
    "PairOperand",
    "Parameter",
    "Pragma",
    "RegisterDeclaration",
    "Scope",
    "Section",
    "Statement",
    "Variable",
    "VectorOperand",
]

# --- operands (chapter 6) -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Name:
    """An identifier: register, variable, label, function or special register (`%tid.x` is one name)."""

    name: str
    negated: bool = False
    """`!p`: a negated predicate operand. `-4` of a constant is an `Immediate`; see `minus` for registers."""
    member: str = ""
    """Element selector of a vector register or variable, `x y z w r g b a` (`v.x`), or of a video instruction
    (`r.b0`, `r.h1`); '' for none."""
    minus: bool = False
    """`-r`: the sign of a vmad operand (9.7.18)."""
    offset: int = 0
    """`variable+8` outside brackets: the address of a byte of a variable."""
    index: int | None = None
    """`variable[2]` outside brackets: the address of an array element (6.4.2)."""
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class Immediate:
    """A constant. `text` is how it is spelled (`16`, `0x10U`, `0f3F800000`, `0d…`, `1.5`, `WARP_SZ`, `(1<<4)|3`)."""

    text: str
    value: int | float = field(compare=False)
    """Integer value, or float value for float constants (`0f…` decoded). `text` decides equality: NaN equals nothing."""
    kind: Literal["int", "f32", "f64", "float"] = "int"
    """f32 for `0f` bits, f64 for `0d` bits, float for decimal notation."""
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class AddressOperand:
    """`[base+offset]`, or with more parts `[base, {c0, c1}]` (tensor copies, surfaces, textures), `[texture, sampler, {c0}]`,
    `[endpoint, offset]` (fabric), `[map, address, {sizes}, {strides}, upper, {c0, c1}]` (tensor copies with overrides)."""

    base: Name | Immediate
    offset: int = 0
    inner: tuple[Name | VectorOperand, ...] = ()
    """What follows the base, in order; the coordinates stand last."""
    zero: bool = False
    """`[a+0]` instead of `[a]`: with debug information ptxas makes a difference (in `.debug_loc`), so the printer keeps it."""
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class VectorOperand:
    """`{a, b, c, d}`; elements are names, immediates, or `_` as `Name('_')`."""

    elements: list[Operand]
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class PairOperand:
    """`d|p`: two destinations in one place (setp, shfl.sync, elect.sync, match.all)."""

    first: Operand
    second: Operand
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class CallArguments:
    """`(a, b)`: an argument or return list of `call`."""

    arguments: list[Operand]
    span: Span | None = field(default=None, compare=False)


Operand = Name | Immediate | AddressOperand | VectorOperand | PairOperand | CallArguments


# --- statements -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Instruction:
    """`@!p opcode.mod.mod a, b, c;`. `mnemonic` is the whole dotted word, e.g. `ld.global.v4.b32`."""

    mnemonic: str
    operands: list[Operand] = field(default_factory=list)
    predicate: Name | None = None
    """Guard; `negated` says `@!p`."""
    span: Span | None = field(default=None, compare=False)
    place: Place | None = field(default=None, compare=False)
    """The user's line (Python frame for traced kernels, `.loc` for parsed text); filled by whoever knows it."""

    @property
    def opcode(self) -> str:
        """First word of the mnemonic, e.g. `ld`."""
        return self.mnemonic.partition(".")[0]


@dataclass(slots=True)
class Label:
    """`name:`"""

    name: str
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class Loc:
    """`.loc file line column` with optional `, function_name label {+offset}, inlined_at file line column`."""

    file: int
    line: int
    column: int
    function_name: str = ""
    """Label in `.debug_str` of the inlined function's name, with its `+offset` if any, as written."""
    inlined_at: tuple[int, int, int] | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class Pragma:
    """`.pragma "text", "text";` (in a module, a function head or a body)."""

    strings: list[str]
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class RegisterDeclaration:
    """`.reg .type names;` Each name may carry a count: `%r<10>` declares %r0 … %r9."""

    type: str
    """Type without the dot."""
    names: list[tuple[str, int | None]]
    """(name, count); count None for a single register."""
    vector: int = 1
    """2 or 4 for `.v2` and `.v4`."""
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class Initializer:
    """`= value` of a variable: nested lists of immediates, names, `name+offset`, `generic(name)+offset`, `0xFF(name)` masks;
    each leaf is kept as written in `text` and decoded in `value` where it is a number."""

    name: str = ""
    """Member of an opaque type: `addr_mode_0` of `{addr_mode_0 = wrap}`."""
    leaves: list[Initializer] | None = None
    """Sub-initialisers for `{…}`; None for a leaf."""
    text: str = ""
    value: int | float | None = field(default=None, compare=False)
    symbol: str = ""
    """Variable or function whose address is taken."""
    offset: int = 0
    generic: bool = False
    mask: int | None = None
    """`0xFF(expr)`: which byte of the address."""
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class Variable:
    """A variable in a state space: `.visible .global .align 16 .b8 name[64] = {…};` (5.4)."""

    space: str
    """`global shared local const param tex sreg`, with `::cta` and other qualifiers kept, without the dot."""
    type: str
    name: str
    shape: list[int | None] = field(default_factory=list)
    """Array dimensions; None for `[]`; empty for scalars."""
    vector: int = 1
    align: int | None = None
    linkage: str = ""
    """`extern visible weak common`, or ''."""
    initializer: Initializer | None = None
    attributes: list[str] = field(default_factory=list)
    """`.attribute(.managed)`, `.unified(…)`, as written."""
    count: int | None = None
    """`name<n>` parameterised names."""
    more: list[Variable] = field(default_factory=list)
    """Further declarators of the same statement (`.shared .b32 a, b;`)."""
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class Parameter:
    """One formal parameter: `.param .align 8 .b8 name[16]`, `.param .u64 .ptr .global .align 16 name`, `.reg .u32 %r`."""

    space: str
    """`param` or `reg`."""
    type: str
    name: str
    shape: list[int | None] = field(default_factory=list)
    align: int | None = None
    pointer: tuple[str, int | None] | None = None
    """`.ptr{.space}{.align n}` as (space or '', alignment or None)."""
    vector: int = 1
    qualifiers: list[str] = field(default_factory=list)
    """Anything further between `.param` and the name, as written (`.const` …)."""
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class BranchTargets:
    """`label: .branchtargets a, b, c;` or `label: .calltargets f, g;` (`kind` says which)."""

    kind: Literal["branchtargets", "calltargets"]
    targets: list[str]
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class CallPrototype:
    """`label: .callprototype (ret) _ (params) .noreturn;`"""

    returns: list[Parameter]
    parameters: list[Parameter]
    name: str = "_"
    directives: list[Directive] = field(default_factory=list)
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class Directive:
    """Any other directive with its words: `.maxntid 128, 1, 1`, `.alias a, b;`, `.explicitcluster`."""

    name: str
    """Without the dot."""
    arguments: list[str] = field(default_factory=list)
    """As written, split at commas."""
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class Scope:
    """`{ … }` inside a body: a lexical scope of registers, variables and labels."""

    body: list[Statement] = field(default_factory=list)
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class Comment:
    """A comment the DSL emits (`// BEGIN name`); the reader drops comments."""

    text: str
    span: Span | None = field(default=None, compare=False)


Statement = (
    Instruction
    | Label
    | Loc
    | Pragma
    | RegisterDeclaration
    | Variable
    | BranchTargets
    | CallPrototype
    | Directive
    | Scope
    | Comment
)


# --- module level ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Function:
    """`.entry` or `.func`; `body` is None for a declaration."""

    kind: Literal["entry", "func"]
    name: str
    parameters: list[Parameter] = field(default_factory=list)
    returns: list[Parameter] = field(default_factory=list)
    directives: list[Directive | Pragma] = field(default_factory=list)
    """`.maxntid`, `.reqntid`, `.minnctapersm`, `.noreturn`, `.unique` … in source order."""
    body: list[Statement] | None = None
    linkage: str = ""
    attributes: list[str] = field(default_factory=list)
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class FileDirective:
    """`.file index "name", timestamp, size`"""

    index: int
    name: str
    timestamp: int | None = None
    size: int | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class Section:
    """`.section .debug_info { … }`: the text between the braces is kept as written."""

    name: str
    text: str
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class Dwarf:
    """`@@DWARF .4byte 0x1, 0x2`: debug data before PTX 2.0 (11.5.1), of the section that the last `section` opened."""

    kind: Literal["section", "byte", "4byte", "quad"]
    arguments: list[str]
    """As written: constants; one label or section; for `section` its name, its flags in quotes, its type as in `@progbits`."""
    span: Span | None = field(default=None, compare=False)


Item = Function | Variable | FileDirective | Section | Dwarf | Pragma | Directive | Comment
