"""Matching a mnemonic to rows: choices, flags, order, availability, operands."""

from warpsmith.assembly.ptx.isa.loader import Table

TEXT = """
let RND = rn | rz@2.0/sm_20+
let ALL = $RND | rm
fma.rnd{$ALL}.ftz?.f32  >d, a, b, c  1.4  sm_13+  9.7.3.6
cvt.dtype{f32|u32}.type{f32|u32}  >d:dtype, a  1.0  sm_10+  9.7.9.21
ld.space{global|shared::cta}?.L2::cache_hint@7.4/sm_80+?.vec{v2|v4}?.type{b32|f32}  >d*vec~, [a], c:b64?(L2::cache_hint)
    1.0  sm_10+  9.7.9.8
"""
TABLE = Table({"t.txt": TEXT})


def test_choices_and_flags():
    (m,) = TABLE.match("fma.rz.f32")
    assert m["rnd"] == "rz"
    assert m["ftz"] is False
    assert m.ordered
    assert [(n.what, n.ptx, n.arch and n.arch.text) for n in m.needs] == [("fma", (1, 4), "sm_13+"), (".rz", (2, 0), "sm_20+")]
    assert [(s.name, s.direction, str(s.type)) for s in m.operands] == [
        ("d", "write", "f32"),
        ("a", "read", "f32"),
        ("b", "read", "f32"),
        ("c", "read", "f32"),
    ]


def test_any_order_is_accepted_and_equal_sets_keep_theirs():
    (m,) = TABLE.match("fma.f32.ftz.rm")
    assert (m["rnd"], m["ftz"], m.ordered) == ("rm", True, False)
    assert (m.mnemonic, m.canonical.mnemonic, m.canonical.ordered) == ("fma.f32.ftz.rm", "fma.rm.ftz.f32", True)
    assert m.canonical.values == m.values
    (m,) = TABLE.match("cvt.f32.u32")
    assert (m["dtype"], m["type"]) == ("f32", "u32")


def test_conditional_operand_and_vector_count():
    (m,) = TABLE.match("ld.global.v4.f32")
    assert [(s.name, s.count, s.space) for s in m.operands] == [("d", 4, None), ("a", None, "global")]
    (m,) = TABLE.match("ld.L2::cache_hint.b32")
    assert [(s.name, s.kind) for s in m.operands] == [("d", "value"), ("a", "address"), ("c", "value")]
    assert not m.operands[2].optional


def test_nothing_fits():
    for text in ("fma.f32", "fma.rn.rz.f32", "fma.rn.f32.v2", "nothing", "fma", "", "ld..b32", "cvt.f32.f32.f32"):
        assert TABLE.match(text) == ()


def test_words_of_the_name_and_types_keep_their_places():
    table = Table(
        {
            "t.txt": "mad.mode{hi|lo}!.cc.type{u32|s32}  >d, a, b, c  3.0  sm_20+  9.7.2.5\n"
            "set.cmp{lt|eq}.dtype{f16|u32}.type{u32|f16}  >d:dtype, a, b  4.2  sm_53+  9.7.8.1\n"
        }
    )
    assert table.match("mad.lo.u32.cc")[0]["mode"] == "lo"
    assert table.match("mad.cc.lo.u32") == ()
    (m,) = table.match("set.f16.u32.lt")
    assert (m["dtype"], m["type"]) == ("f16", "u32")
    assert table.match("set.u32.f16.lt")[0]["dtype"] == "u32"
