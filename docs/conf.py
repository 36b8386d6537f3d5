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
suppress_warnings = ["myst.xref_missing"]  # links into the repository and to the API reference are plain links
