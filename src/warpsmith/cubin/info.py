"""`.nv.info`, `.nv.info.<kernel>` and `.nv.compat`: attributes as (form, id, payload).

Form 1 has no value beyond the two bytes that follow, 2 a byte, 3 a half word, 4 a half word of length and that many bytes. A
table may end in zeros. Ids and the layouts of what they carry are rows of `attributes.txt`; an id that is not there keeps its
bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import CubinError
from warpsmith.cubin.attributes import INFO, attribute_id, attribute_name, known_id

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Attribute", "InfoTable"]

NONE, BYTE, HALF, SIZED = 1, 2, 3, 4


@final
@dataclass(slots=True, eq=False)
class Attribute:
    """One attribute. `payload` is what follows the form and the id (and the length, for form 4)."""

    form: int
    id: int
    payload: bytes
    kind: str = INFO

    @property
    def name(self) -> str:
        """The id's name without `EIATTR_`, or `0x5f` for one that has none."""
        return attribute_name(self.kind, self.id)

    @property
    def value(self) -> int:
        """The payload as one little-endian number."""
        return int.from_bytes(self.payload, "little")

    def words(self) -> tuple[int, ...]:
        """Return the payload as little-endian 32-bit words; what is left over at the end is dropped."""
        return tuple(int.from_bytes(self.payload[i : i + 4], "little") for i in range(0, len(self.payload) - 3, 4))

    def encode(self) -> bytes:
        """Return the attribute's bytes."""
        head = bytes((self.form, self.id))
        return head + len(self.payload).to_bytes(2, "little") + self.payload if self.form == SIZED else head + self.payload

    @classmethod
    def sized(cls, name: str, *words: int) -> Attribute:
        """Return an attribute of form 4 that holds 32-bit words."""
        return cls(SIZED, attribute_id(INFO, name), b"".join(w.to_bytes(4, "little") for w in words))

    @classmethod
    def half(cls, name: str, value: int) -> Attribute:
        """Return an attribute of form 3."""
        return cls(HALF, attribute_id(INFO, name), value.to_bytes(2, "little"))

    @classmethod
    def byte(cls, name: str, value: int) -> Attribute:
        """Return an attribute of form 2."""
        return cls(BYTE, attribute_id(INFO, name), bytes((value, 0)))

    @classmethod
    def flag(cls, name: str) -> Attribute:
        """Return an attribute of form 1."""
        return cls(NONE, attribute_id(INFO, name), b"\0\0")


@final
class InfoTable:
    """The attributes of a section, in order."""

    __slots__ = ("attributes", "tail")

    def __init__(self, attributes: list[Attribute], tail: bytes = b"") -> None:
        self.attributes, self.tail = attributes, tail

    @classmethod
    def decode(cls, data: bytes, section: str, kind: str = INFO) -> InfoTable:
        """Read a table of attributes."""
        out: list[Attribute] = []
        at, end = 0, len(data)
        while at < end:
            form = data[at]
            if form == 0 and not any(data[at:]):
                return cls(out, data[at:])
            if form not in (NONE, BYTE, HALF, SIZED) or at + 4 > end:
                raise CubinError(f"attribute form {form:#x} is not known; known are 1, 2, 3 and 4", offset=at, section=section)
            stop = at + 4
            if form == SIZED:
                stop += int.from_bytes(data[at + 2 : at + 4], "little")
                if stop > end:
                    raise CubinError(
                        f"attribute {data[at + 1]:#x} of {stop - at - 4} bytes ends behind the section's end",
                        offset=at,
                        section=section,
                    )
            out.append(Attribute(form, data[at + 1], data[at + 4 : stop] if form == SIZED else data[at + 2 : at + 4], kind))
            at = stop
        return cls(out)

    def encode(self) -> bytes:
        """Return the table's bytes."""
        return b"".join([a.encode() for a in self.attributes]) + self.tail

    def __len__(self) -> int:
        return len(self.attributes)

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def all(self, name: str) -> list[Attribute]:
        """Return the attributes called `name`, such as `KPARAM_INFO`, in order."""
        return [a for a in self.attributes if a.id == known_id(a.kind, name)]

    def get(self, name: str) -> Attribute | None:
        """Return the first attribute called `name`, or None."""
        return next((a for a in self.attributes if a.id == known_id(a.kind, name)), None)

    def remove(self, name: str) -> int:
        """Remove the attributes called `name`; return how many there were."""
        before = len(self.attributes)
        self.attributes = [a for a in self.attributes if a.id != known_id(a.kind, name)]
        return before - len(self.attributes)
