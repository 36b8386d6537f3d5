"""Nicer spellings of instructions: wrappers and operators that emit the very same instruction."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["sugared"]

_FIXED = {
    "ret": "ptx.ret({})",
    "bra": "ptx.bra({})",
    "bar.sync": "ptx.bar.sync({})",
    "bar.arrive": "ptx.bar.arrive({})",
    "fence.proxy.async": "ptx.fence.proxy_async({})",
    "fence.proxy.async.shared::cta": "ptx.fence.proxy_async_shared_cta({})",
    "fence.mbarrier_init.release.cluster": "ptx.fence.mbarrier_init({})",
    "wgmma.fence.sync.aligned": "ptx.wgmma.fence({})",
    "wgmma.commit_group.sync.aligned": "ptx.wgmma.commit_group({})",
    "wgmma.wait_group.sync.aligned": "ptx.wgmma.wait_group({})",
    "cp.async.commit_group": "ptx.cp.async_.commit_group({})",
    "cp.async.wait_group": "ptx.cp.async_.wait_group({})",
    "cp.async.wait_all": "ptx.cp.async_.wait_all({})",
    "cp.async.bulk.commit_group": "ptx.cp.async_.bulk.commit_group({})",
    "cp.async.bulk.wait_group": "ptx.cp.async_.bulk.wait_group({})",
    "barrier.cluster.arrive": "ptx.cluster.arrive({})",
    "barrier.cluster.wait": "ptx.cluster.wait({})",
    "barrier.cluster.arrive.aligned": "ptx.cluster.arrive(aligned=True{,})",
    "barrier.cluster.wait.aligned": "ptx.cluster.wait(aligned=True{,})",
    "setmaxnreg.inc.sync.aligned.u32": "ptx.setmaxnreg_inc({})",
    "setmaxnreg.dec.sync.aligned.u32": "ptx.setmaxnreg_dec({})",
    "mbarrier.init.shared::cta.b64": "ptx.mbarrier.init({})",
    "mbarrier.inval.shared::cta.b64": "ptx.mbarrier.inval({})",
}
"""mnemonic → call; `{}` takes the operands and the guard."""

_TYPED = {"mov", "add", "sub", "setp", "selp", "and", "or", "xor", "not", "shl"}
_LOGIC = {"and", "or", "xor", "not", "shl"}
_IN_PLACE = {"add": "+=", "sub": "-=", "and": "&=", "or": "|=", "xor": "^=", "shl": "<<="}
_SPACES = ("global", "shared", "local", "param", "const")


def sugared(mnemonic: str, operands: Sequence[str], pred: str, types: dict[str, str]) -> str | None:
    """Return the nicer spelling, None when there is none. `types` has the PTX type of each register expression."""
    template = _FIXED.get(mnemonic)
    if template is not None:
        inside = ", ".join(operands)
        inside = (inside + pred) if inside else pred[2:]
        return template.replace("{,}", f", {inside}" if inside else "").replace("{}", inside)
    opcode, *words = mnemonic.split(".")
    if opcode in ("ld", "st"):
        return _memory(opcode, words, operands, pred)
    if opcode not in _TYPED or not words:
        return None
    return _in_place(opcode, words, operands, pred, types) or _typed(opcode, words, operands, pred)


def _in_place(opcode: str, words: list[str], operands: Sequence[str], pred: str, types: dict[str, str]) -> str | None:
    if opcode not in _IN_PLACE or len(words) != 1 or pred or len(operands) != 3 or operands[0] != operands[1]:
        return None
    kind, other = types.get(operands[0], ""), operands[2]
    if kind not in ("b32", "u32", "s32", "b64", "u64", "s64") or words[0][1:] != kind[1:]:
        return None
    wanted = kind if kind[0] != "b" else f"u{kind[1:]}"
    if opcode in ("add", "sub") and words[0] != wanted:
        return None
    if opcode not in ("add", "sub") and words[0][0] != "b":
        return None
    same = types.get(other, "")[1:] in (kind[1:], "") and not (opcode == "shl" and other in types)
    fits = not re.fullmatch(r"-?\d+", other) or opcode != "shl" or 0 <= int(other) < int(kind[1:])
    return f"{operands[0]} {_IN_PLACE[opcode]} {other}" if same and fits and other[0] not in "\"'[" else None


def _typed(opcode: str, words: list[str], operands: Sequence[str], pred: str) -> str | None:
    name = opcode if opcode not in ("and", "or", "not", "xor") else f"{opcode}_"
    if opcode == "setp":
        if len(words) != 2 or words[1] not in TYPES or len(operands) != 3:
            return None
        return f'ptx.setp("{words[0]}", {words[1]}, {", ".join(operands)}{pred})'
    if len(words) != 1 or words[0] not in TYPES or (opcode in _LOGIC and words[0][0] not in "bp"):
        return None
    return f"ptx.{name}({words[0]}, {', '.join(operands)}{pred})"


def _memory(opcode: str, words: list[str], operands: Sequence[str], pred: str) -> str | None:
    if len(words) < 2 or words[0] not in _SPACES or words[-1] not in TYPES or len(operands) != 2:
        return None
    value = operands[0] if opcode == "ld" else operands[1]
    middle = words[1:-1]
    vector = f"v{value.count(',') + 1}" if value[0] == "[" else ""
    if vector and (not middle or middle.pop() != vector):
        return None
    if len(middle) > 1 or (middle and middle[0] not in ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc")):
        return None
    cache = f', cache="{middle[0]}"' if middle else ""
    return f'ptx.{opcode}({words[-1]}, {", ".join(operands)}, space="{words[0]}"{cache}{pred})'
