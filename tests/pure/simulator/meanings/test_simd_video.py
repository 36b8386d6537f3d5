"""Selectors and masks of the SIMD video instructions, whole programs against integers lane by lane."""

import itertools

import pytest
from tests.pure.simulator.meanings.test_scalar_video import inputs, run

OPERATIONS = {
    "vadd": lambda a, b: a + b, "vsub": lambda a, b: a - b, "vabsdiff": lambda a, b: abs(a - b), "vmin": min, "vmax": max,
    "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}  # fmt: skip
SELECTORS = {2: ("", "h32", "h01", "h20"), 4: ("", "b7654", "b0123", "b5260")}
MASKS = {2: ("", "h0", "h1", "h10"), 4: ("", "b0", "b31", "b210", "b3210")}


def lanes(a, b, bits, selector, second, signed):
    """The lanes that a selector names, the lowest first."""
    both = [x >> bits * i & (1 << bits) - 1 for x in (a, b) for i in range(32 // bits)]
    n = 32 // bits
    chosen = [int(d) for d in reversed(selector[1:])] or [i + n * second for i in range(n)]
    values = [both[i] for i in chosen]
    return [v - (1 << bits) if signed and v >> bits - 1 else v for v in values]


def expected(mnemonic, selectors, row):
    a, b, c = row
    words = mnemonic.split(".")
    count = int(words[0][-1])
    bits = 32 // count
    types = [w for w in words if w in ("u32", "s32")]
    x = lanes(a, b, bits, selectors[1], False, types[1] == "s32")
    y = lanes(a, b, bits, selectors[2], True, types[2] == "s32")
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if types[0] == "s32" else (0, (1 << bits) - 1)
    results = [OPERATIONS[words[0][:-1]](p, q) for p, q in zip(x, y, strict=True)]
    if "sat" in words:
        results = [min(max(r, low), high) for r in results]
    mask = {int(d) for d in selectors[0][1:]} or set(range(count))
    if "add" in words:
        return (c + sum(r for i, r in enumerate(results) if i in mask)) & 0xFFFFFFFF
    word = 0
    for i, r in enumerate(results):
        lane = r if i in mask else c >> bits * i
        word |= (lane & (1 << bits) - 1) << bits * i
    return word


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("opcode", sorted(OPERATIONS))
def test_selectors_and_masks(opcode, count):
    types = [("u32", "u32", "u32"), ("s32", "s32", "u32"), ("s32", "u32", "s32")]
    forms = [
        (f"{opcode}{count}.{'.'.join(t)}{tail}", (mask, a, b))
        for (t, tail), mask, (a, b) in itertools.product(
            itertools.product(types, ("", ".sat", ".add")),
            MASKS[count],
            [("", ""), SELECTORS[count][1:3], SELECTORS[count][2:4]],
        )
    ]
    texts = []
    for mnemonic, selectors in forms:
        d, a, b = (name + (s and f".{s}") for name, s in zip(("%d", "%a", "%b"), selectors, strict=True))
        texts.append(f"{mnemonic} {d}, {a}, {b}, %c")
    results = run(texts, "elementwise instructions", "hardware-checked")
    rows = inputs().tolist()
    for text, (mnemonic, selectors), got in zip(texts, forms, results, strict=True):
        assert got.tolist() == [expected(mnemonic, selectors, row) for row in rows], text
