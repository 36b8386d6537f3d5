"""Names in PTX and names of files cannot become Python code of their own."""

import ast

import pytest

from warpsmith import ptx
from warpsmith.assembly.ptx import parse as parse_text

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"


@pytest.mark.parametrize("name", ['x""";evil=1;"""\n.ptx', "a\\.ptx", 'a".ptx', "a\udcff.ptx", "a\\N{x}", '\\"""'])
def test_the_name_of_a_file_stays_in_the_docstring(name: str) -> None:
    source = ptx.to_python(parse_text(HEAD + ".entry k() { ret; }", name=name))
    docstring, imported, kernel = ast.parse(source).body
    assert isinstance(docstring, ast.Expr)
    assert isinstance(imported, ast.ImportFrom)
    assert isinstance(kernel, ast.FunctionDef)
    source.encode()


@pytest.mark.parametrize("name", ["class", "None", "True", "def", "ptx", "kernel", "reg", "f32", "range", "$x"])
def test_kernels_called_like_something_of_python(name: str) -> None:
    source = ptx.to_python(
        HEAD + f".visible .entry {name}(.param .u64 import) {{ .reg .f32 class; mov.f32 class, 0f3F800000; ret; }}\n"
    )
    scope: dict[str, object] = {}
    exec(compile(source, "transpiled.py", "exec"), scope)
    kernels = [v for v in scope.values() if hasattr(v, "ptx") and hasattr(v, "configuration")]
    assert len(kernels) == 1
    assert f".entry {name}(" in kernels[0].ptx(loc=False).replace(" (", "(")
