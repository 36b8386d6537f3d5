"""`tcgen05.mma` in every form (PTX ISA 9.7.18.10.10): dense, sparse, block-scaled, weight-stationary."""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.base.instruction_descriptor import KINDS, decode, shape_problem
from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.address import Address
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.trace import current
from warpsmith.ptx.tcgen05.arguments import Pred, group_word, is_word, tensor_memory, untyped

__all__ = ["mma"]

_USES = ("fill", "use", "lastuse", "discard")
_VECTORS = {"mxf8f6f4": ("1X", "block32"), "mxf4": ("2X", "block32"), "mxf4nvf4": ("2X", "4X", "block16", "block32")}
"""Kind -> ways to say how many elements share a scale factor."""


def mma(
    d: object, a: object, b: Reg, idesc: int | Reg, *, cta_group: int = 1, kind: str = "f16",
    enable_input_d: bool | Reg | NegPred = True, scale_d: int | None = None, sparse: bool = False, ashift: bool = False,
    collector_a: str | None = None, a_is_tmem: bool = False, sparse_metadata: object = None,
    pred_operand: Reg | NegPred | None = None, scale_c: int | None = None, ws: bool = False, collector_b: str | None = None,
    zero_columns: Reg | None = None, scale_a: object = None, scale_b: object = None, scale_vec: str | None = None,
    disable_output_lane: Sequence[int | Reg] | None = None, pred: Pred = None,
) -> None:  # fmt: skip
    """Start D = A·B, plus D where `enable_input_d` is true (a bool or a predicate; `pred_operand` is the same argument).

    One thread issues it. `d`, and `a` with `a_is_tmem`, are addresses in tensor memory, else `a` and `b` are descriptors;
    `idesc` is what `make_instr_desc` gives. `scale_d` (0 to 15, of f16 and tf32; `scale_c` is the same argument) divides the D
    that is added by 2**scale_d. `sparse` reads `sparse_metadata`, an address in tensor memory, and so do block-scaled
    kinds `scale_a` and `scale_b`, with `scale_vec` "1X", "2X", "4X", "block16" or "block32". `ashift` shifts the rows of A by
    one. `collector_a` is "fill", "use", "lastuse" or "discard"; with `ws`, `collector_b` is "b0::fill" to "b3::discard".
    `disable_output_lane`: 4 words (8 for a pair) whose bits keep lanes of D as they are. `zero_columns` is the 64-bit mask
    of `ws`.
    """
    call = f"tcgen05.mma of .kind::{kind}"
    if kind not in KINDS:
        raise error(f"tcgen05.mma: kind is one of {', '.join(KINDS)}, not {kind!r}")
    group = group_word(cta_group)
    _check_flags(call, kind, cta_group, ws, ashift, a_is_tmem, disable_output_lane, zero_columns)
    _check_instruction(call, idesc, kind, cta_group, sparse, ws, a_is_tmem)
    words = ["tcgen05.mma", *(["ws"] if ws else []), *(["sp"] if sparse else []), group, f"kind::{kind}"]
    words += _scaling_words(call, kind, scale_a, scale_b, scale_vec)
    words += ["ashift"] if ashift else []
    words += _collector(call, ws, ashift, collector_a, collector_b)
    operands: list[object] = [_in_tensor_memory("d", d), _operand_a(a, a_is_tmem), _descriptor("b", b)]
    if sparse != (sparse_metadata is not None):
        raise error(f"{call}: sparse=True and sparse_metadata, an address in tensor memory, go together")
    operands += [_in_tensor_memory("sparse_metadata", sparse_metadata)] if sparse else []
    operands.append(_word(idesc))
    if scale_a is not None:
        operands += [_in_tensor_memory("scale_a", scale_a), _in_tensor_memory("scale_b", scale_b)]
    operands += _mask(call, cta_group, disable_output_lane)
    operands.append(_enable(enable_input_d, pred_operand))
    operands += _input_scale(call, kind, ws, scale_d, scale_c)
    operands += [] if zero_columns is None else [_descriptor("zero_columns", zero_columns)]
    current().emit(".".join(words), operands, pred)


def _check_flags(
    call: str, kind: str, cta_group: int, ws: bool, ashift: bool, a_is_tmem: bool, lanes: object, zero_columns: object
) -> None:
    scaled = kind.startswith("mx")
    if ws and (cta_group != 1 or scaled):
        raise error(f"{call}: ws is of one CTA (cta_group=1) and of f16, tf32, f8f6f4 and i8")
    if ashift and (not a_is_tmem or ws or scaled):
        raise error(f"{call}: ashift is of A in tensor memory (a_is_tmem=True), without ws and scale factors")
    if lanes is not None and (ws or scaled):
        raise error(f"{call}: disable_output_lane is of f16, tf32, f8f6f4 and i8 without ws")
    if zero_columns is not None and not ws:
        raise error(f"{call}: zero_columns is of ws=True")


def _check_instruction(call: str, idesc: object, kind: str, cta_group: int, sparse: bool, ws: bool, a_is_tmem: bool) -> None:
    """Read an instruction descriptor that is known now; refuse what contradicts the call."""
    if isinstance(idesc, Reg):
        if not is_word(idesc):
            raise error(f"{call}: idesc is an int or a 32-bit register, and {idesc.name} is {idesc.dtype}")
        return
    if isinstance(idesc, bool) or not isinstance(idesc, int) or not 0 <= idesc < 1 << 32:
        raise error(f"{call}: idesc is an int of 32 bits or a register, not {idesc!r}", "see ptx.tcgen05.make_instr_desc")
    try:
        how = decode(idesc, kind)
    except ValueError as e:
        raise error(f"{call}: idesc {idesc:#010x}: {e}", f'make it with make_instr_desc("{kind}", …)') from None
    if how.sparse != sparse:
        raise error(f"{call}: idesc says {'sparse' if how.sparse else 'dense'}, and the call sparse={sparse}")
    if how.a_mn_major and a_is_tmem:
        raise error(f"{call}: A in tensor memory is K-major, and idesc says a_major='MN'")
    problem = shape_problem(how, cta_group, ws)
    if problem:
        raise error(f"{call} with cta_group={cta_group}{', ws' if ws else ''}: {problem} (idesc {idesc:#010x})")


def _scaling_words(call: str, kind: str, scale_a: object, scale_b: object, scale_vec: str | None) -> list[str]:
    ways = _VECTORS.get(kind)
    if ways is None:
        if scale_a is not None or scale_b is not None or scale_vec is not None:
            raise error(f"{call} has no scale factors", f"use one of {', '.join(_VECTORS)}")
        return []
    if scale_a is None or scale_b is None:
        raise error(f"{call} needs scale_a and scale_b, addresses of the scale factors in tensor memory")
    if scale_vec is None and kind == "mxf4nvf4":
        raise error(f"{call} needs scale_vec: {', '.join(ways)}")
    if scale_vec is not None and scale_vec not in ways:
        raise error(f"{call}: scale_vec is {' or '.join(ways)}, not {scale_vec!r}")
    word = scale_vec if scale_vec is None or scale_vec.startswith("block") else f"scale_vec::{scale_vec}"
    return ["block_scale", *([word] if word else [])]


def _collector(call: str, ws: bool, ashift: bool, a: str | None, b: str | None) -> list[str]:
    if a is not None:
        allowed = _USES[2:] if ashift else _USES
        if ws or a not in allowed:
            reason = "is not of ws: use collector_b" if ws else f"is one of {', '.join(allowed)}, not {a!r}"
            raise error(f"{call}: collector_a {reason}")
        return [f"collector::a::{a}"]
    if b is not None:
        buffer, _, use = b.partition("::")
        if not ws or buffer not in ("b0", "b1", "b2", "b3") or use not in _USES:
            reason = f"is b0::fill to b3::discard, not {b!r}" if ws else "is of ws=True"
            raise error(f"{call}: collector_b {reason}")
        return [f"collector::{b}"]
    return []


def _in_tensor_memory(what: str, value: object) -> Address:
    return untyped(tensor_memory(what, value))


def _operand_a(a: object, in_tensor_memory: bool) -> Reg | Address:
    return _in_tensor_memory("a", a) if in_tensor_memory else _descriptor("a", a)


def _descriptor(what: str, value: object) -> Reg:
    if not isinstance(value, Reg) or value.dtype.bits != 64 or value.dtype.kind in ("float", "packed"):
        shown = f"{value.name} is {value.dtype}" if isinstance(value, Reg) else f"{type(value).__name__} is none"
        if what == "a":
            raise error(f"a is a 64-bit descriptor, and {shown}", "see ptx.tcgen05.descriptor, or write a_is_tmem=True")
        raise error(f"{what} is a 64-bit register, and {shown}", "see ptx.tcgen05.descriptor" if what == "b" else "")
    return value


def _word(value: int | Reg) -> Reg:
    """An instruction descriptor is a register."""
    if isinstance(value, Reg):
        return value
    register = current().new(TYPES["u32"])
    current().emit("mov.u32", (register, value))
    return register


def _mask(call: str, cta_group: int, words: Sequence[int | Reg] | None) -> list[object]:
    if words is None:
        return []
    given = list(words)
    if len(given) != 4 * cta_group:
        raise error(f"{call}: disable_output_lane has {4 * cta_group} words of 32 lanes, not {len(given)}")
    return [[_word(w) for w in given]]


def _enable(flag: bool | Reg | NegPred, operand: Reg | NegPred | None) -> Reg | NegPred:
    """Return the predicate enable-input-d."""
    if operand is not None:
        if flag is not True:
            raise error("enable_input_d and pred_operand are one argument: give one of them")
        flag = operand
    reg = flag.reg if isinstance(flag, NegPred) else flag
    if isinstance(reg, Reg):
        if reg.type != "pred":
            raise error(f"enable_input_d is a bool or a predicate register, and {reg.name} is {reg.dtype}")
        return flag  # type: ignore[return-value]
    if not isinstance(flag, (bool, int)):
        raise error(f"enable_input_d is a bool or a predicate register, not {type(flag).__name__}")
    constant = current().new(TYPES["pred"])
    current().emit("setp.ne.u32", (constant, int(bool(flag)), 0))
    return constant


def _input_scale(call: str, kind: str, ws: bool, scale_d: int | None, scale_c: int | None) -> list[object]:
    if scale_d is not None and scale_c is not None:
        raise error("scale_d and scale_c are one argument: give one of them")
    value = scale_c if scale_d is None else scale_d
    if value is None:
        return []
    if kind not in ("f16", "tf32") or ws:
        raise error(f"{call}{' with ws' if ws else ''} does not scale D: scale_d is of f16 and tf32 without ws")
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 15:
        raise error(f"{call}: scale_d is 0 to 15, D is divided by 2**scale_d, not {value!r}")
    return [value]
