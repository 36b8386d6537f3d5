"""Cut the text of an instruction into tokens: the unit in which probing sees change and tables state text.

`@P0 LDG.E.64 R4, desc[UR4][R2.64+0x10]` is `@` `P0` ` ` `LDG` `.E` `.64` ` ` `R4` `, ` `desc` `[` `UR4` `]` `[` `R2` `.64`
`+` `0x10` `]`.
Joining the tokens gives the text back.
"""

from __future__ import annotations

import re

__all__ = ["RELATIVE", "kind_of", "number_of", "tokenize"]

_TOKEN = re.compile(
    r"U?R(?:Z|\d+)(?![A-Za-z0-9_])|U?P(?:T|\d)(?![A-Za-z0-9_])"
    r"|[+-](?:INF|QNAN|SNAN) ?"
    r"|-0\.0 |-?0x[0-9a-f]+"
    r"|-?\d+(?:\.\d+)?(?:e[+-]\d+)?(?![A-Za-z0-9_])"
    r"|\.[A-Za-z0-9_?]+|[A-Za-z0-9_?]+|, |."
)
RELATIVE = "→"
"""Opens a token that holds a distance from the instruction's own address, which a plain text never contains."""

_NONFINITE = ("+INF", "-INF", "+QNAN", "-QNAN", "+SNAN", "-SNAN")


def tokenize(text: str) -> list[str]:
    """Return the tokens of a text, in order."""
    return _TOKEN.findall(text)


def kind_of(token: str) -> str:
    """Say what number a token carries: `R`, `UR`, `P`, `UP` (a register's), `x` (hexadecimal), `r` (a distance), `f`
    (decimal), or '' for none."""
    first = token[0]
    if first == RELATIVE:
        return "r"
    if first == "R" or first == "P":
        rest = token[1:]
        return first if rest.isdigit() or rest == ("Z" if first == "R" else "T") else ""
    if first == "U" and len(token) > 2 and token[1] in "RP":
        rest = token[2:]
        return token[:2] if rest.isdigit() or rest == ("Z" if token[1] == "R" else "T") else ""
    if token.startswith(("0x", "-0x")):
        return "x"
    if first.isdigit() or (first == "-" and len(token) > 1 and token[1].isdigit()):
        return "f" if token[-1].isdigit() or token == "-0.0 " else ""
    return "f" if token.rstrip() in _NONFINITE else ""


def number_of(token: str, kind: str) -> int | None:
    """Return the number of a register or hexadecimal token; None for the register of all ones (`RZ`, `PT`)."""
    if kind == "x" or kind == "r":
        return int(token.removeprefix(RELATIVE), 16)
    rest = token[len(kind) :]
    return int(rest) if rest.isdigit() else None
