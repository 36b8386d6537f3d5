"""The scalar reference as a fixture (test folders are no packages)."""

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def reference():
    spec = importlib.util.spec_from_file_location("scalar_reference", Path(__file__).with_name("scalar_reference.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
