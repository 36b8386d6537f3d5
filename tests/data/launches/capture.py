"""Take down what a compiled host function launches (kernels, parameters in pieces), fills and copies; nothing runs."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warpsmith.assembly.ptx import parse
from warpsmith.base.tensormap import ELEMENTS, INTERLEAVES, L2_PROMOTIONS, SWIZZLES, TensorMapFields
from warpsmith.base.tensormap_bits import encode
from warpsmith.simulator.layout import parameter_offsets, size_of

HERE = Path(__file__).resolve().parent
START, APART = 0x7A00_0000_0000, 1 << 32
"""Address of the first array, and how far the next one is from it."""


class Capture:
    """The launches of one library that was compiled from `text`."""

    def __init__(self, folder: Path, text: str, arrays: list[str], *, capability: int = 90, multiprocessors: int = 4) -> None:
        """`arrays` names the arrays in the order of the host function's addresses; what it allocates comes from `memory`."""
        self.arrays, self.launches, self.errors = arrays, [], []
        self.maps: dict[bytes, dict[str, Any]] = {}
        entries = [f for f in parse(text, "x.ptx").functions() if f.kind == "entry"]
        self.parameters = {f.name: [size_of(p) for p, _ in parameter_offsets(f)] for f in entries}
        self.driver = stand_in(folder)
        i, u64, words = ctypes.c_int, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint32)
        wide, keep = ctypes.POINTER(u64), self._kept
        self._hooks = {
            "on_map": ctypes.CFUNCTYPE(i, ctypes.c_void_p, i, i, u64, wide, wide, words, words, i, i, i, i)(keep(self._map, 1)),
            "on_launch": ctypes.CFUNCTYPE(None, ctypes.c_char_p, words, ctypes.c_uint32, wide)(keep(self._launch)),
            "on_fill": ctypes.CFUNCTYPE(None, u64, i, u64)(keep(self._fill)),
            "on_copy": ctypes.CFUNCTYPE(None, u64, u64, u64)(keep(self._copy)),
        }
        for name, hook in self._hooks.items():
            ctypes.c_void_p.in_dll(self.driver, name).value = ctypes.cast(hook, ctypes.c_void_p).value
        ctypes.c_int.in_dll(self.driver, "capability").value = capability
        ctypes.c_int.in_dll(self.driver, "multiprocessors").value = multiprocessors
        self.library = ctypes.CDLL(str(folder / "lib.so"))

    def build(self, *numbers: int) -> list[dict[str, Any]]:
        """Call `build` of the library with the addresses of the arrays and these numbers; return what it launched."""
        addresses = (ctypes.c_uint64 * len(self.arrays))(*(START + APART * n for n in range(len(self.arrays))))
        self.launches, self.maps, self.errors = [], {}, []
        if "memory" in self.arrays:
            u64 = ctypes.c_uint64
            u64.in_dll(self.driver, "memory").value = START + APART * self.arrays.index("memory")
        status = self.library.build(addresses, *map(ctypes.c_int, numbers))
        for error in self.errors:
            raise error
        assert status == 0, f"the host function gave up with {status}"
        assert self.launches
        return self.launches

    def _kept(self, hook: Callable[..., Any], failed: int | None = None) -> Callable[..., Any]:
        """The hook, with its errors kept for `build` to raise: what a hook raises is lost in the host function."""

        def call(*arguments: Any) -> Any:
            try:
                return hook(*arguments)
            except Exception as e:
                self.errors.append(e)
                return failed

        return call

    def _place(self, address: int) -> tuple[str, int] | None:
        """The array around an address, and where in it."""
        which, offset = divmod(address - START, APART)
        return (self.arrays[which], offset) if 0 <= which < len(self.arrays) and offset < APART // 2 else None

    def _map(self, at: int, element: int, rank: int, address: int, *more: Any) -> int:
        dims, strides, box, steps, interleave, swizzle, l2, fill = more
        fields: dict[str, Any] = {
            "element": list(ELEMENTS)[element], "dims": dims[:rank], "strides": strides[: rank - 1], "box": box[:rank],
            "element_strides": steps[:rank], "interleave": INTERLEAVES[interleave], "swizzle": SWIZZLES[swizzle],
            "l2": L2_PROMOTIONS[l2],
        }  # fmt: skip
        plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
        data = encode(TensorMapFields(address=address, **plain))
        place = self._place(address)
        assert place is not None, hex(address)
        assert not fill
        self.maps[data] = {"array": place[0], "at": place[1], **fields}
        ctypes.memmove(at, data, 128)
        return 0

    def _launch(self, name: bytes, shape: Any, shared: int, arguments: Any) -> None:
        sizes = self.parameters[name.decode()]
        params = [self.cut(ctypes.string_at(arguments[n], size)) for n, size in enumerate(sizes)]
        how = {"grid": shape[:3], "block": shape[3:6], "cluster": shape[6:9], "shared": shared}
        self.launches.append({"kernel": name.decode(), **how, "params": params})

    def _fill(self, address: int, value: int, size: int) -> None:
        place = self._place(address)
        assert place is not None, hex(address)
        fill = {"zero": place[0], "at": place[1], "size": size}
        self.launches.append({**fill, "value": value} if value else fill)

    def _copy(self, to: int, of: int, size: int) -> None:
        places = self._place(to), self._place(of)
        assert None not in places, (hex(to), hex(of))
        self.launches.append({"copy": places[0], "of": places[1], "size": size})

    def cut(self, data: bytes) -> list[Any]:
        """Cut a parameter into bytes (as hexadecimal), pointers (names of arrays, offsets) and tensor maps."""
        out: list[Any] = []
        plain, at = b"", 0
        while at < len(data):
            piece: Any = self.maps.get(data[at : at + 128])
            place = None if piece else self._place(int.from_bytes(data[at : at + 8], "little"))
            if piece is None and (place is None or len(data) - at < 8):
                plain, at = plain + data[at : at + 8], at + 8
                continue
            out += [["bytes", plain.hex()]] if plain else []
            out.append(["pointer", *place] if place else ["map", piece])
            plain, at = b"", at + (8 if place else 128)
        return out + ([["bytes", plain.hex()]] if plain else [])


def stand_in(folder: Path) -> ctypes.CDLL:
    """Compile and load the stand-in, so that what is loaded later binds to it."""
    library = folder / "stand_in.so"
    flags = "-shared", "-Xcompiler", "-fPIC,-w", "-cudart", "none"
    subprocess.run(["nvcc", *flags, str(HERE / "stand_in.c"), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
