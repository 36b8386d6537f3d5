from __future__ import annotations

import pytest

from warpsmith.base.mangled import same_in_source, source_name


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_Z5saxpyifPKfPf", "saxpy"),
        ("_Z9transposeILi32EEvPK6__halfPS0_i", "transpose"),
        ("_ZL4helpf", "help"),
        ("_ZN4math5saxpyEf", "saxpy"),
        ("_ZNK4math5saxpyEf", "saxpy"),
        ("_ZN12_GLOBAL__N_13addEv", "add"),
        ("_ZN3fooILi3ELb1EE3barILin2EEEvv", "bar"),
        ("_ZN2at29vectorized_elementwise_kernelILi4ENS0_13BinaryFunctorIfffEEEEviT0_T1_", "vectorized_elementwise_kernel"),
        ("_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiiEEEEEEEvNT_6ParamsE", "device_kernel"),
        ("hist", ""),
        ("_Z", ""),
        ("_Z99x", ""),
        ("_ZN3fooI", "foo"),
        ("_ZN3fooIL", "foo"),
        ("_Z5π", ""),
    ],
)  # fmt: skip
def test_the_name_in_the_source(mangled: str, name: str) -> None:
    assert source_name(mangled) == name


def test_the_names_that_are_one_in_the_source() -> None:
    names = ["_Z1fi", "f", "_ZN1g1fEf", "_Z1gv"]
    assert same_in_source("f", names) == ["_Z1fi", "_ZN1g1fEf"]
    assert same_in_source("", names) == []
