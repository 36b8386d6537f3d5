"""XLA's call frame, laid out by hand as its header says: what is read, what is answered, what is refused."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from warpsmith.base.errors import CapabilityError
from warpsmith.launch.xla_frame import COMMAND_BUFFER, make_error, read_frame

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class Call:
    """A frame of some buffers; `asked` are the (place, context) of the functions that were called."""

    def __init__(self, arguments: list[int | None], results: list[int | None], *, size: int = 160, functions: int = 24) -> None:
        self.keep: list[Any] = []
        self.asked: list[tuple[int, int]] = []
        self.messages: list[tuple[bytes, int]] = []
        self.answers = {4: 0x7F00_1234_5678, 17: 3}
        table = [self.callback(place) for place in range(functions)]
        self.api = self.words(48 + 8 * functions, 0, 24, 0, 3 << 32, 0, *table)  # version 0.3
        frame = [size, 0, self.api, 0xC0DE, 1, 40, 0, len(arguments), 0, self.buffers(arguments)]
        frame += [40, 0, len(results), 0, self.buffers(results), 0, 0, 0, 0, 0]
        self.address = self.words(*frame)

    def words(self, *values: int) -> int:
        made = (ctypes.c_uint64 * len(values))(*values)
        self.keep.append(made)
        return ctypes.addressof(made)

    def buffers(self, data: list[int | None]) -> int:
        return self.words(*[0 if at is None else self.words(48, 0, 11, at, 1, 0) for at in data], 0)

    def callback(self, place: int) -> int:
        def called(address: int) -> int:
            if place == 0:
                self.messages.append((ctypes.c_char_p.from_address(address + 16).value or b"", 13))
                return 0xE44
            words = (ctypes.c_uint64 * 4).from_address(address)
            assert words[0] == 32
            self.asked.append((place, words[2]))
            words[3] = self.answers[place]
            return 0

        function = CALLBACK(called)
        self.keep.append(function)
        return ctypes.cast(function, ctypes.c_void_p).value or 0


def test_addresses_stream_and_device() -> None:
    call = Call([0x7F00_0000_1000, None, 0x10], [0xFFFF_FFFF_F000])
    frame = read_frame(call.address)
    assert frame is not None
    assert frame.addresses == [0x7F00_0000_1000, 0x10, 0xFFFF_FFFF_F000]
    assert [frame.stream(), frame.device(), frame.stream()] == [0x7F00_1234_5678, 3, 0x7F00_1234_5678]
    assert call.asked == [(4, 0xC0DE), (17, 0xC0DE), (4, 0xC0DE)]
    nothing = read_frame(Call([], []).address)
    assert nothing is not None
    assert nothing.addresses == []


@pytest.mark.parametrize("traits", [0, COMMAND_BUFFER])
def test_the_metadata_question_is_answered(traits: int) -> None:
    call = Call([], [])
    metadata = call.words(48, 24, 0, 0, 0xFFFF_FFFF_0000_0000, 0)
    extension = call.words(32, 1, 0, metadata)
    (ctypes.c_uint64 * 2).from_address(call.address)[1] = extension
    assert read_frame(call.address, traits) is None
    version = [ctypes.c_int.from_address(metadata + 24 + 4 * k).value for k in range(2)]
    assert version == [0, 3]
    assert ctypes.c_uint32.from_address(metadata + 32).value == traits
    other = call.words(32, 2, 0, metadata)
    (ctypes.c_uint64 * 2).from_address(call.address)[1] = other
    assert read_frame(call.address, traits) is not None


def test_what_is_too_old_is_refused() -> None:
    with pytest.raises(
        CapabilityError, match=r"^XLA's call frame has 152 bytes, fewer than version 0\.1 has; install a newer jax$"
    ):
        read_frame(Call([], [], size=152).address)
    frame = read_frame(Call([], [], functions=4).address)
    assert frame is not None
    with pytest.raises(CapabilityError, match=r"^XLA tells a foreign function no stream or device here; install a newer jax$"):
        frame.stream()


def test_an_error_is_made_with_its_message() -> None:
    call = Call([], [])
    assert make_error(call.address, "InputError: no") == 0xE44
    assert call.messages == [(b"InputError: no", 13)]
