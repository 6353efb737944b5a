"""The folders of flight recordings: one for each wrapped server, below the user's folder of state.

Design constraint: recordings hold what passed between host and server, so the folders and files are their owner's
alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpace.system.files import replace_content

ABOUT = "server.json"
ENDING = ".jsonl.zst"
MOST_ABOUT_BYTES = 64 * 1024


@dataclass(frozen=True)
class Flight:
    """The recordings of one wrapped server."""

    folder: Path
    server: str
    configuration: str
    """Path of the host's configuration."""
    address: str = ""
    """Address of a server with a URL: scheme, host and port."""
    local_address: str = ""
    """Address of the recorder that stands in front of it, or stood there last."""

    def recordings(self) -> list[Path]:
        """Its recordings, the newest first: their names begin with the time."""
        try:
            names = [entry.name for entry in os.scandir(self.folder) if entry.is_file(follow_symlinks=False)]
        except OSError:
            return []
        return [self.folder / name for name in sorted(names, reverse=True) if name.endswith(ENDING)]


def flights_root(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of all flight recordings of the user."""
    state = environment.get("XDG_STATE_HOME", "")
    return (Path(state) if state.startswith("/") else Path.home() / ".local" / "state") / "mcpace" / "flights"


def folder_name(configuration: Path, path: tuple[str, ...]) -> str:
    """The folder of a server, by the path of its entry in a configuration. It differs for each configuration."""
    digest = hashlib.sha256(json.dumps([str(configuration), *path]).encode()).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9._-]', '_', path[-1])[:40].lstrip('.') or '_'}-{digest}"


def make_flight(flight: Flight) -> None:
    """Makes the folder of a server and writes down whose it is.

    Raises :class:`OSError`.
    """
    flight.folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    flight.folder.mkdir(exist_ok=True, mode=0o700)
    about = {name: value for name, value in vars(flight).items() if name != "folder"}
    # The address of a server with a URL is nowhere else while its configuration is changed.
    replace_content(flight.folder / ABOUT, json.dumps(about).encode())


def list_flights(root: Path) -> list[Flight]:
    """All wrapped servers that have a folder, by name. A folder that is not one of ours is left out."""
    try:
        folders = sorted(Path(entry.path) for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
    return [flight for folder in folders if (flight := read_flight(folder)) is not None]


def read_flight(folder: Path) -> Flight | None:
    """The server of a folder; ``None`` where there is none."""
    try:
        with (folder / ABOUT).open("rb") as file:
            about: Any = json.loads(file.read(MOST_ABOUT_BYTES))
        known = ("server", "configuration", "address", "local_address")
        return Flight(folder, **{name: str(value) for name, value in about.items() if name in known})
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return None
