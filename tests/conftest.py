"""Settings for every test: property tests repeat exactly; what needs a tool or a package that is missing is left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from warpsmith.toolchain import find_tool

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")

TOOL_TESTS = Path(__file__).parent / "tool"
MISSING = [name for name in ("ptxas", "nvdisasm") if find_tool(name) is None]
NEEDS_PACKAGE = {"tool/test_dask.py": "distributed"}
collect_ignore = [file for file, package in NEEDS_PACKAGE.items() if find_spec(package) is None]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--regenerate` writes expected text anew instead of comparing with it; review the difference before you commit it."""
    parser.addoption("--regenerate", action="store_true", help="write expected text anew instead of comparing with it")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out `tests/tool` without its tools, but never in CI, where they must be there."""
    if not MISSING or os.environ.get("CI"):
        return
    config.hook.pytest_deselected(items=[item for item in items if TOOL_TESTS in item.path.parents])
    items[:] = [item for item in items if TOOL_TESTS not in item.path.parents]


def pytest_report_header() -> list[str]:
    """Say what is left out and how to get it."""
    tools = f"tests/tool deselected: {' and '.join(MISSING)} not found; `warpsmith doctor` says more"
    packages = [f"tests/{file} left out: {NEEDS_PACKAGE[file]} is not installed" for file in collect_ignore]
    return [*([tools] if MISSING else []), *packages]


@pytest.fixture(scope="session", autouse=True)
def _cache_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep compiled kernels of the tests out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARPSMITH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
