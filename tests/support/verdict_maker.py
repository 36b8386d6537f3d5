"""Random instructions of declared rows, right and spoiled ones, for comparing verdicts with ptxas."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.isa import OperandSlot, Row, match, rows
from warpsmith.base.arch import parse_arch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["ARCHITECTURES", "DECLARATIONS", "TYPES", "Maker"]

TYPES = (
    *("b8", "u8", "s8", "b16", "u16", "s16", "f16", "b32", "u32", "s32", "f32", "f16x2"),
    *("b64", "u64", "s64", "f64", "b128", "pred"),
)
ARCHITECTURES = ("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_103a", "sm_107a", "sm_120a")
VECTORS = ("b16", "b32", "u32", "f32", "b64", "f64")
"""Types of which vector registers are declared: `%v2_f32`, `%v4_f32`."""
_DECLARED = " ".join(f".reg .{t} %{t}_<300>;" for t in TYPES) + " .local .align 16 .b8 loc[64]; .param .align 16 .b8 pp[64];"
DECLARATIONS = (
    _DECLARED + " " + " ".join(f".reg .v{n} .{t} %v{n}_{t};" for t in VECTORS for n in (2, 4) if n * int(t[1:]) <= 128)
)


class Maker:
    """Makes instructions of declared rows, and spoils some."""

    def __init__(self, seed: int, opcodes: Sequence[str] = ()) -> None:
        self.draw = random.Random(seed)
        control = ("call", "ret", "exit", "trap", "brkpt", "bra", "brx")
        self.rows = [r for r in rows() if (r.opcode in opcodes if opcodes else r.opcode not in control)]
        self.within = bool(opcodes)
        self.fresh = 140
        """The next register that nothing else of the instruction names."""

    def architecture(self, row: Row) -> str:
        """Draw an architecture, in a draw of a family one that has the instruction."""
        fitting = [a for a in ARCHITECTURES if row.arch.allows(parse_arch(a))] if self.within else []
        return self.draw.choice(fitting or ARCHITECTURES)

    def instruction(self) -> tuple[str, str]:
        """Return an architecture, and an instruction without its `;`."""
        draw = self.draw
        self.fresh = 140
        while True:
            row = draw.choice(self.rows)
            mnemonic = self.mnemonic(row)
            if found := [m for m in match(mnemonic) if m.row is row]:
                break
        arch = self.architecture(row)
        operands = [self.operand(slot) for slot in found[0].operands if not slot.optional or draw.random() < 0.5]
        spoil = draw.random()
        if spoil < 0.5:
            return arch, f"{mnemonic} {', '.join(operands)}"
        mnemonic, operands = draw.choice(self.spoilers())(mnemonic, operands, row)
        return arch, f"{mnemonic} {', '.join(operands)}"

    def mnemonic(self, row: Row) -> str:
        words = [row.opcode]
        for element in row.elements:
            if element.optional and self.draw.random() < 0.6:
                continue
            words.append(self.draw.choice(list(element.words)))
        return ".".join(words)

    def register(self, kind: str) -> str:
        return f"%{kind}_{self.draw.randrange(4)}"

    def results(self, kind: str, count: int) -> list[str]:
        """Registers to write: ptxas wants those of one instruction to differ."""
        self.fresh += count
        return [f"%{kind}_{k}" for k in range(self.fresh - count, self.fresh)]

    def vector(self, slot: OperandSlot, count: int) -> str:
        kind = self.type_of(slot)
        if count in (2, 4) and kind in VECTORS and count * int(kind[1:]) <= 128 and self.draw.random() < 0.06:
            return f"%v{count}_{kind}"
        elements = [f"%{kind}_{k}" for k in range(count)] if slot.direction == "read" else self.results(kind, count)
        if slot.first is not None:
            elements[0] = self.register(slot.first.reg)
        if count and slot.direction == "read" and self.draw.random() < 0.04:
            elements[self.draw.randrange(count)] = self.draw.choice(["1", "0f3F800000", "_", "%v4_f32.x"])
        return "{" + ", ".join(elements) + "}"

    def operand(self, slot: OperandSlot) -> str:
        draw = self.draw
        if slot.kind == "address":
            return self.address(slot)
        if slot.kind == "label":
            return "L0"
        if slot.kind == "immediate":
            return self.immediate(slot)
        if slot.pair is not None and (not slot.pair.optional or draw.random() < 0.5):
            return f"{self.single(slot)}|{self.single(slot.pair)}"
        if slot.count is not None:
            return self.vector(slot, slot.count)
        return self.single(slot)

    def single(self, slot: OperandSlot) -> str:
        if (
            slot.direction == "read"
            and slot.type is not None
            and slot.type.name in ("u32", "s32", "b32")
            and self.draw.random() < 0.1
        ):
            return str(self.draw.randrange(32))
        if slot.sink and self.draw.random() < 0.2:
            return "_"
        if slot.direction == "read" and self.type_of(slot) in ("f32", "b32") and self.draw.random() < 0.03:
            return f"%v2_{self.type_of(slot)}.y"
        return self.register(self.type_of(slot)) if slot.direction == "read" else self.results(self.type_of(slot), 1)[0]

    @staticmethod
    def type_of(slot: OperandSlot) -> str:
        if slot.kind == "predicate":
            return "pred"
        if slot.type is None:
            return "b32"
        return slot.type.reg if slot.type.reg in TYPES else f"b{max(slot.type.bits, 8)}"

    def immediate(self, slot: OperandSlot) -> str:
        if slot.choices:
            return str(self.draw.choice(slot.choices))
        low, high = slot.range or (0, 1)
        return str(self.draw.randint(low, min(high, low + 300)))

    def address(self, slot: OperandSlot) -> str:
        space = (slot.space or "").partition("::")[0]
        base = {
            "global": "g",
            "shared": "s",
            "const": "cc",
            "local": "loc",
            "param": "pp" if slot.direction == "write" else "q",
        }.get(space)
        if base is None or (self.draw.random() < 0.3 and space in ("global", "shared")):
            base = "%b32_1" if space in ("shared", "tmem", "fabric") else "%b64_1"
        inner = [self.operand(x) for x in slot.inner if not x.optional]
        if self.draw.random() < (0.03 if inner else 0.2):
            base += self.draw.choice(["+16", "+32", "+-16", "+0"])
        return f"[{', '.join([base, *inner])}]"

    # --- spoiling ---------------------------------------------------------------------------------------------------

    def spoilers(self) -> list[Callable[[str, list[str], Row], tuple[str, list[str]]]]:
        return [
            self.other_type,
            self.other_type,
            self.constant,
            self.drop,
            self.add,
            self.word,
            self.word,
            self.lose_word,
            self.more_words,
            self.length,
        ]

    def other_type(self, mnemonic: str, operands: list[str], row: Row) -> tuple[str, list[str]]:
        """Another register type, consistently within one operand."""
        places = [k for k, o in enumerate(operands) if re.search(r"%(\w+?)_\d", o)]
        if places:
            k = self.draw.choice(places)
            operands[k] = re.sub(r"%\w+?_(\d)", rf"%{self.draw.choice(TYPES)}_\1", operands[k])
        return mnemonic, operands

    def constant(self, mnemonic: str, operands: list[str], row: Row) -> tuple[str, list[str]]:
        if operands:
            k = self.draw.randrange(len(operands))
            operands[k] = self.draw.choice(["1", "1.5", "0f3F800000", "0d3FF0000000000000", "%tid.x", "g", "-1", "70", "_"])
        return mnemonic, operands

    def drop(self, mnemonic: str, operands: list[str], row: Row) -> tuple[str, list[str]]:
        return mnemonic, operands[:-1]

    def add(self, mnemonic: str, operands: list[str], row: Row) -> tuple[str, list[str]]:
        return mnemonic, [*operands, self.register(self.draw.choice(["b32", "pred", "b64"]))]

    def word(self, mnemonic: str, operands: list[str], row: Row) -> tuple[str, list[str]]:
        """Another word of the opcode's vocabulary in place of one."""
        words = mnemonic.split(".")
        vocabulary = sorted({w for r in rows(row.opcode) for w in r.words})
        if len(words) > 1:
            words[self.draw.randrange(1, len(words))] = self.draw.choice(vocabulary)
        return ".".join(words), operands

    def lose_word(self, mnemonic: str, operands: list[str], row: Row) -> tuple[str, list[str]]:
        words = mnemonic.split(".")
        if len(words) > 1:
            del words[self.draw.randrange(1, len(words))]
        return ".".join(words), operands

    def more_words(self, mnemonic: str, operands: list[str], row: Row) -> tuple[str, list[str]]:
        words = mnemonic.split(".")
        vocabulary = sorted({w for r in rows(row.opcode) for w in r.words})
        words.insert(self.draw.randrange(1, len(words) + 1), self.draw.choice(vocabulary or ["ftz"]))
        return ".".join(words), operands

    def length(self, mnemonic: str, operands: list[str], row: Row) -> tuple[str, list[str]]:
        """Another length of a vector, or a vector where none belongs."""
        if operands:
            k = self.draw.randrange(len(operands))
            n = self.draw.choice([1, 2, 4, 8])
            found = re.search(r"%(\w+?)_\d", operands[k])
            kind = found[1] if found else "b32"
            operands[k] = "{" + ", ".join(f"%{kind}_{j}" for j in range(n)) + "}"
        return mnemonic, operands
