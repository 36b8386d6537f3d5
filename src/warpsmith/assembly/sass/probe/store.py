"""What has been learned so far, on disk: one line of JSON for each form, so that an interrupted run goes on where it was."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, final

from warpsmith.assembly.sass.probe.form import Start, Study
from warpsmith.assembly.sass.table_text import Shared, parse_row, parse_shared, row_text, shared_text
from warpsmith.base.errors import DeclarationError, InputError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Store"]


@final
class Store:
    """A file of studies, appended to as they end. `.studies` maps a start to what it gave."""

    def __init__(self, path: Path, header: str, *, resume: bool) -> None:
        self.path = path
        self.studies: dict[Start, Study] = {}
        self.adopted: dict[tuple[str, str], int] = {}
        """Class of another architecture and digest of its rows -> words on which its forms hold here; 0 if they do not."""
        if resume and path.exists():
            self._read(header)
        else:
            path.write_text(json.dumps({"probe": header}) + "\n")

    def add(self, start: Start, study: Study) -> None:
        """Keep a study."""
        self.studies[start] = study
        with self.path.open("a") as file:
            file.write(json.dumps(_plain(start, study)) + "\n")

    def adopt(self, name: str, rows: str, tried: int) -> None:
        """Keep what checking an inherited class, whose rows have this digest, gave."""
        self.adopted[name, rows] = tried
        with self.path.open("a") as file:
            file.write(json.dumps({"adopted": name, "rows": rows, "tried": tried}) + "\n")

    def _read(self, header: str) -> None:
        lines = self.path.read_text().splitlines()
        try:
            records = [json.loads(line) for line in lines if line.endswith("}")]  # the last one may be cut short
            if not records or records[0].get("probe") != header:
                raise InputError(
                    f"{self.path} is from another run ({lines[0][:80] if lines else 'empty'}); this one is {header}"
                )
            for record in records[1:]:
                if "adopted" in record:
                    self.adopted[record["adopted"], record["rows"]] = record["tried"]
                    continue
                start, study = _study(record)
                self.studies[start] = study
        except (ValueError, KeyError, TypeError, DeclarationError) as error:
            raise InputError(f"{self.path} is damaged: {error}; start again without --resume") from error
        self.path.write_text("".join(f"{line}\n" for line in lines if line.endswith("}")))


def _plain(start: Start, study: Study) -> dict[str, Any]:
    shared: Shared = {}
    row = row_text(study.row, shared) if study.row else None
    return {
        "start": _start(start),
        "row": row,
        "shared": [shared_text(k, v) for k, v in shared.items()],
        "more": [_start(m) for m in study.more],
        "others": study.others,
        "counts": [study.probes, study.wrong, study.tried],
        "log": study.log,
    }


def _start(start: Start) -> list[Any]:
    return [start.name, start.base, start.fixed, [list(n) for n in start.nots]]


def _parse_start(items: list[Any]) -> Start:
    return Start(items[0], items[1], items[2], tuple((m, v) for m, v in items[3]))


def _study(record: dict[str, Any]) -> tuple[Start, Study]:
    shared = dict(parse_shared(line) for line in record["shared"])
    probes, wrong, tried = record["counts"]
    row = parse_row(record["row"], shared) if record["row"] else None
    more = [_parse_start(m) for m in record["more"]]
    return _parse_start(record["start"]), Study(row, more, record["others"], probes, wrong, tried, record["log"])
