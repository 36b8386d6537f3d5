"""How Sphinx builds the pages beside this file; pdoc adds the API reference (see `make docs`)."""

import tomllib
from pathlib import Path

_project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]

project = "Warpsmith"
release = _project["version"]
copyright = "the Warpsmith authors"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = f"Warpsmith {release}"
html_static_path: list[str] = []
myst_heading_anchors = 3
# Links into the repository and to the API reference are plain links. The PTX lexer of Pygments knows neither
# `@%p` nor `::`, says so, and colours the rest.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure"]
