"""Random programs of many threads: the same every time, of many kinds, alike in every schedule, made smaller without harm."""

import numpy as np
import pytest

from warpsmith.assembly.ptx.parser import parse
from warpsmith.base.errors import InputError
from warpsmith.hardware import flow_capture as capture
from warpsmith.hardware.flow.nodes import Group, printed, replaced, sized, walk
from warpsmith.hardware.flow.program import arguments, generate
from warpsmith.hardware.flow.shrink import shrunk, size
from warpsmith.hardware.flow_store import FlowCapture, digest_of, digests
from warpsmith.simulator import blockcode

FEATURES = (
    "@!%q bra bra.uni brx.idx ret; exit; call call.uni .callprototype ld.param st.param ld.local st.local isspacep "
    "cvta mapa .b128 v4.u8 shfl.sync.up shfl.sync.down shfl.sync.bfly shfl.sync.idx vote.sync.any vote.sync.ballot "
    "match.any.sync match.all.sync redux.sync elect.sync bar.warp.sync bar.sync barrier.cta.sync bar.arrive "
    "bar.red.popc barrier.red.and barrier.cluster.arrive mbarrier.arrive mbarrier.try_wait.parity "
    "mbarrier.test_wait mbarrier.arrive.expect_tx cp.async.ca cp.async.cg cp.async.wait_group cp.async.bulk.shared "
    "cp.reduce.async.bulk st.async ld.acquire st.release red.release fence.acq_rel atom.shared atom.global "
    "red.shared red.global red.shared::cluster atom.shared.cas ldmatrix stmatrix movmatrix mma.sync prmt bfe bfi "
    "lop3 shf dp4a "
)


def texts(n):
    return [generate(i).text("sm_90a") for i in range(n)]


def test_generation_repeats():
    assert texts(3) == texts(3)
    assert len(set(texts(5))) == 5


def test_programs_use_every_kind_of_statement():
    together = "\n".join(texts(80))
    assert [f for f in FEATURES.split() if f not in together] == []


def test_shapes_of_all_kinds_occur():
    shapes = [generate(i).shape for i in range(60)]
    assert {s.ctas for s in shapes} == {1, 2, 4}
    assert {s.threads for s in shapes} == {32, 40, 64, 72, 96, 128}
    assert {s.cluster for s in shapes} == {True, False}


@pytest.mark.parametrize("number", [1, 10, 19])
def test_every_way_to_run_a_program_gives_the_same(number):
    assert capture.scheduled(number) == ""


def test_one_call_for_several_registers_gives_the_same_as_one_for_each(monkeypatch):
    p = generate(27)
    expected = digests(capture.simulated(p))
    monkeypatch.setattr(blockcode, "GROUPED_LANES", 0)
    assert capture.differs(p, expected) == ""


def test_what_differs_is_said():
    p = generate(1)
    left = digests(capture.simulated(p))
    left[2] ^= 1
    assert capture.differs(p, left) == "program 1: cells"
    assert capture.differs(p, left, max_steps=3).startswith("program 1, {'max_steps': 3}: ")


def test_results_depend_on_what_the_program_computes():
    values = arguments(generate(1))
    assert not capture.simulated(generate(1))[1].sum() == values[1].sum() == 0


# --- smaller programs -------------------------------------------------------------------------------------------------


def test_nodes_are_walked_and_replaced_by_their_place():
    tree = ("a;", Group(("{", ("b;", Group(("(", ("c;",), ")"))), "}")), "d;")
    assert sized(tree) == 6
    assert list(printed(tree)) == ["a;", "{", "    b;", "    (", "        c;", "    )", "}", "d;"]
    at = next(path for path, node in walk(tree) if node == "c;")
    assert list(printed(replaced(tree, at, ("e;", "f;"))))[4:6] == ["        e;", "        f;"]
    assert list(printed(replaced(tree, (1,), ()))) == ["a;", "d;"]


def test_a_program_is_made_as_small_as_what_is_asked_of_it():
    p = next(q for q in map(generate, range(50)) if "brx.idx" in q.text("sm_90a").split(".visible")[1])
    asked = lambda q: "brx.idx" in q.text("sm_90a").split(".visible")[1]  # noqa: E731
    small = shrunk(p, asked)
    assert size(small) < 6 < size(p)
    assert asked(small)
    parse(small.text("sm_90a"))
    capture.simulated(small)


# --- captures ---------------------------------------------------------------------------------------------------------


def made(tmp_path, numbers):
    left = np.stack([digests(capture.simulated(generate(n))) for n in numbers])
    crc = np.array([digest_of(generate(n).text("sm_90a")) for n in numbers], np.uint32)
    path = tmp_path / "flow.capture"
    FlowCapture({"arch": "sm_90a"}, list(numbers), crc, left, np.zeros(len(crc), np.uint8)).write(path)
    return path, crc, left


def test_a_capture_comes_back_and_shows_what_differs(tmp_path):
    path, crc, left = made(tmp_path, (1, 19))
    assert capture.compare(path) == "2 programs, 0 differ"
    left[1, 1] ^= 1
    crc[0] ^= 1
    FlowCapture({"arch": "sm_90a"}, [1, 19], crc, left, np.array([0, 2], np.uint8)).write(path)
    assert FlowCapture.read(path).optimised.tolist() == [0, 2]
    assert capture.compare(path).splitlines() == [
        "2 programs, 2 differ",
        "program 1: the generator makes another text of it now; take the capture anew",
        "program 19: second store",
    ]


def test_a_file_that_is_none_is_refused(tmp_path):
    path = tmp_path / "x"
    path.write_text("no")
    with pytest.raises(InputError, match=r"^.*x is not a capture of random programs of many threads: File is not a zip file$"):
        FlowCapture.read(path)


def test_a_program_is_printed_whole(capsys):
    assert capture.main(["show", "3"]) == 0
    assert capsys.readouterr().out.strip() == generate(3).text("sm_90a").strip()
