"""Writes rows as ``mcpace export --parquet`` does, for tests of the readers of these tables."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mcpace.lab.tables.schema import TABLES, arrow_schema

MILLISECOND = 1_000_000
FIRST = datetime(2026, 11, 1, tzinfo=UTC)
DEFAULTS: dict[str, Any] = {
    "text": "",
    "whole": 0,
    "flag": False,
    "time": FIRST,
}


def write_table(folder: Path, table: str, rows: Iterable[dict[str, Any]], source: str = "shop") -> list[Path]:
    """Writes the files of a table, one for each recording and day. Columns that a row lacks are null or empty."""
    import pyarrow
    from pyarrow import parquet

    files: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        whole = {one.name: None if one.is_nullable else DEFAULTS[one.type] for one in TABLES[table][1]} | row
        whole["recording"] = whole["recording"] or "0123456789ab"
        files.setdefault((str(whole["started"].date()), whole["recording"]), []).append(whole)
    paths = []
    for (day, recording), held in files.items():
        place = folder / table / f"day={day}" / f"source={source}" / f"session-{recording}.parquet"
        place.parent.mkdir(parents=True, exist_ok=True)
        schema = arrow_schema(table, recording, "0.1.0")
        parquet.write_table(pyarrow.Table.from_pylist(held, schema), place)
        paths.append(place)
    return paths


def exchange(started: datetime, milliseconds: float | None, name: str = "search", **others: Any) -> dict[str, Any]:
    """A row of ``exchanges``: a call of a tool."""
    duration = None if milliseconds is None else int(milliseconds * MILLISECOND)
    return {"started": started, "duration_ns": duration, "method": "tools/call", "name": name, **others}
