"""`--help` of the commands that argparse reads: the lines of usage stand one below the other, as they are written."""

import importlib

import pytest

MODULES = ("__main__", "flow_reduce", "flow_capture", "scalar_capture", "differential_capture")


@pytest.mark.parametrize("name", MODULES)
def test_the_description_is_shown_as_written(name, capsys):
    module = importlib.import_module(f"warpsmith.hardware.{name}")
    with pytest.raises(SystemExit) as ended:
        module.main(["--help"])
    assert ended.value.code == 0
    assert module.__doc__.strip() in capsys.readouterr().out
