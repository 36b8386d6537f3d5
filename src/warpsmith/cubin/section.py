"""A section of a cubin: its header's fields, its content, and where it stands in the file."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar, final

from warpsmith.base.errors import CubinError
from warpsmith.cubin.elf import NOBITS_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Content", "Raw", "Reserved", "Section", "Sections", "is_capsule"]

CAPSULE_FLAG = 0x10000000
"""`sh_flags` of the sections that hold a second, encoded form of the code (sm_100 and later)."""


class Content(Protocol):
    """What a section holds; `encode` gives the bytes that stand in the file."""

    def encode(self) -> bytes:
        """Return the bytes that stand in the file."""
        ...


ContentT = TypeVar("ContentT")


@final
@dataclass(slots=True)
class Raw:
    """Bytes that are not taken apart: code, constants, initial values, capsules."""

    data: bytes

    def encode(self) -> bytes:
        """Return the bytes."""
        return self.data


@final
@dataclass(slots=True)
class Reserved:
    """A section that has a size and no bytes in the file: shared, local and zero-initialised global memory."""

    size: int

    def encode(self) -> bytes:
        """Return no bytes."""
        return b""


@final
@dataclass(slots=True, eq=False)
class Section:
    """One section. `content` may be shared with another section: a capsule's constants are those of the code, stored once."""

    name: str
    name_offset: int
    """Where the name stands in the table of section names."""
    type: int
    flags: int
    address: int
    link: int
    info: int
    alignment: int
    entry_size: int
    content: Content
    null_offset: int = 0
    """The offset that the null section's header states."""

    @property
    def size(self) -> int:
        """Bytes in the file, or in memory for a section that has none in the file."""
        return self.content.size if isinstance(self.content, Reserved) else len(self.content.encode())

    @property
    def data(self) -> bytes:
        """The bytes in the file."""
        return self.content.encode()

    @property
    def in_file(self) -> bool:
        """Whether the section has bytes in the file."""
        return self.type not in NOBITS_TYPES

    def holds(self, kind: builtins.type[ContentT]) -> ContentT:
        """Return the content, which must be of `kind`."""
        if not isinstance(self.content, kind):
            raise CubinError(f"the section holds {type(self.content).__name__}, not {kind.__name__}", section=self.name)
        return self.content


def is_capsule(section: Section) -> bool:
    """Whether the section belongs to the second form of the code that sm_100 and later carry."""
    return bool(section.flags & CAPSULE_FLAG)


@final
@dataclass(slots=True)
class Sections:
    """The section table, in its order; index 0 is the null section."""

    items: list[Section] = field(default_factory=list)
    _state: tuple[int, int] = (0, 0)
    _by_name: dict[str, Section] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Section]:
        return iter(self.items)

    def __getitem__(self, key: int | str) -> Section:
        if isinstance(key, int):
            if not 0 <= key < len(self.items):
                raise CubinError(f"section {key} does not exist; there are {len(self.items)}")
            return self.items[key]
        if (found := self.find(key)) is None:
            raise CubinError(f"there is no section {key!r}; sections: {', '.join(s.name for s in self.items[1:9])}, …")
        return found

    def __contains__(self, name: object) -> bool:
        return any(s.name == name for s in self.items)

    def find(self, name: str) -> Section | None:
        """Return the first section called `name`, or None."""
        state = (id(self.items), len(self.items))
        if self._state != state:
            self._state = state
            self._by_name = {s.name: s for s in reversed(self.items)}
        found = self._by_name.get(name)
        if found is not None and found.name == name:
            return found
        return next((s for s in self.items if s.name == name), None)  # a name was changed since, or there is none

    def index(self, section: Section) -> int:
        """Return the section's number."""
        return next(i for i, s in enumerate(self.items) if s is section)

    def of_type(self, *types: int) -> Iterable[Section]:
        """Return the sections of these types, in table order."""
        return [s for s in self.items if s.type in types]
