"""Modules that are run as `python -m …`: help without a GPU, and errors in a line with status 2."""

import importlib

import pytest

from warpsmith.base.errors import InputError
from warpsmith.base.module_command import run_module

NAMES = ("hardware.mufu_capture", "hardware.mufu_verify", "study.launch_check", "study.kernel_check", "study.bit_compare")


@pytest.mark.parametrize("name", NAMES)
def test_help_needs_no_gpu(name, capsys):
    module = importlib.import_module(f"warpsmith.{name}")
    assert run_module(module.main, module.__doc__, ["--help"]) == 0
    assert capsys.readouterr().out == module.__doc__.strip() + "\n"


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("bit_compare", ["many"], "error: bit_compare takes a number of problems, e.g. 100; 'many' was given\n"),
        ("kernel_check", ["fast"], "error: kernel_check takes no arguments; 'fast' was given\n"),
        (
            "launch_check",
            ["tensorflow"],
            "error: no group is called 'tensorflow'; there are torch, compiled, cupy, interface, jax, verbs, devices, faults\n",
        ),
    ],
)
def test_wrong_arguments(name, arguments, message, capsys):
    module = importlib.import_module(f"warpsmith.study.{name}")
    assert run_module(module.main, module.__doc__, arguments) == 2
    assert capsys.readouterr().err == message


def test_errors_of_ours_are_a_line(capsys):
    def main(arguments):
        raise InputError(f"no: {arguments}")

    assert run_module(main, None, ("a",)) == 2
    assert capsys.readouterr().err == "error: no: ['a']\n"
