"""Wraps and unwraps the servers of a configuration, with the folders of their recordings and the recorders of URLs."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from mcpace import _core
from mcpace.lab.errors import LabError
from mcpace.lab.hosts import RING_BYTES
from mcpace.lab.hosts.configuration_file import ConfigurationFile
from mcpace.lab.hosts.flight_wrap import Change, unwrap_text, wrap_text
from mcpace.lab.hosts.flights import Flight, folder_name, list_flights, make_flight, read_flight
from mcpace.lab.hosts.server_entries import ServerEntry
from mcpace.lab.hosts.url_addresses import replace_addresses


class FlightChanges:
    """Changes of configurations that need the folders of the recordings."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.recorders: list[_core.Recorder] = []

    def wrap_commands(self, file: ConfigurationFile, chosen: frozenset[str]) -> Change:
        """Wraps the servers that have a command, and makes their folders."""
        change = wrap_text(file.text, lambda entry: self._folder(file, entry.path), file.is_toml, chosen)
        for path in change.changed:
            _make(Flight(self._folder(file, path), path[-1], str(file.place)))
        return change

    def unwrap(self, file: ConfigurationFile, chosen: frozenset[str]) -> Change:
        """Restores commands and URLs."""
        change = unwrap_text(file.text, file.is_toml, chosen)
        restored = self.restore_urls(replace(file, text=change.text), chosen)
        return Change(restored.text, change.changed + restored.changed, change.left)

    def redirect_urls(self, file: ConfigurationFile, chosen: frozenset[str]) -> Change:
        """Starts a recorder for each server that has a URL, and puts its address into the text."""
        text = self.restore_urls(file, chosen).text
        return replace_addresses(text, file.is_toml, chosen, lambda entry, address: self._record(file, entry, address))

    def restore_urls(self, file: ConfigurationFile, chosen: frozenset[str]) -> Change:
        """Replaces the addresses of recorders by those of the servers."""
        # A server that was renamed meanwhile is known by the address of its recorder.
        originals = {
            flight.local_address: flight.address
            for flight in list_flights(self.root)
            if flight.address and flight.configuration == str(file.place)
        }
        change = replace_addresses(file.text, file.is_toml, chosen, lambda _, address: originals.get(address))
        # An address that can't be read was never replaced.
        return Change(change.text, change.changed)

    def _record(self, file: ConfigurationFile, entry: ServerEntry, address: str) -> str:
        folder = self._folder(file, entry.path)
        known = read_flight(folder)
        recorder = _start_recorder(f"{address}/", folder, urlsplit(known.local_address).port if known else None)
        self.recorders.append(recorder)
        local = recorder.url.removesuffix("/")
        _make(Flight(folder, entry.name, str(file.place), address, local))
        return local

    def _folder(self, file: ConfigurationFile, path: tuple[str, ...]) -> Path:
        return self.root / folder_name(file.place, path)


def _start_recorder(upstream: str, folder: Path, port: int | None) -> _core.Recorder:
    """Starts a recorder, at the port that it had last where that is free: hosts keep tokens by address."""
    ring = (str(folder), RING_BYTES)
    if port:
        with contextlib.suppress(_core.EnvironmentProblem):
            return _core.Recorder(upstream, keep=False, port=port, ring=ring)
    return _core.Recorder(upstream, keep=False, ring=ring)


def _make(flight: Flight) -> None:
    try:
        make_flight(flight)
    except OSError as error:
        raise LabError(f"cannot make the folder of recordings {error.filename}: {error.strerror}") from error
