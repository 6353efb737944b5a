"""Wraps and unwraps the servers of a configuration, with the folders of their recordings and the recorders of URLs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from mcpace import _core
from mcpace.lab.errors import EnvironmentProblem, LabError
from mcpace.lab.hosts import RING_BYTES
from mcpace.lab.hosts.configuration_file import ConfigurationFile, read_editable_configuration
from mcpace.lab.hosts.flight_wrap import SHELL, Change, Left, unwrap_text, wrap_text
from mcpace.lab.hosts.flights import ABOUT, Flight, folder_name, list_flights, make_flight, read_flight
from mcpace.lab.hosts.server_entries import ServerEntry
from mcpace.lab.hosts.url_addresses import replace_addresses


class FlightChanges:
    """Changes of configurations that need the folders of the recordings."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.recorders: list[_core.Recorder] = []
        self._recorded: dict[str, str] = {}
        """Addresses of servers by those of their recorders, for the recorders of this process."""

    def wrap_commands(self, file: ConfigurationFile, chosen: frozenset[str]) -> Change:
        """Wraps the servers that have a command, and makes their folders.

        Raises :class:`EnvironmentProblem` where the system has no shell of POSIX.
        """
        if not Path(SHELL).exists():
            raise EnvironmentProblem(
                f"mcpace wrap needs {SHELL}, which this system ({sys.platform}) does not have: record one server with "
                "mcpace record"
            )
        change = wrap_text(file.text, lambda entry: self._folder(file, entry.path), file.is_toml, chosen)
        for path in change.changed:
            _make(Flight(self._folder(file, path), path[-1], str(file.place)))
        return change

    def unwrap(self, file: ConfigurationFile, chosen: frozenset[str]) -> Change:
        """Restores commands and URLs."""
        change = unwrap_text(file.text, file.is_toml, chosen)
        restored = self.restore_urls(replace(file, text=change.text), chosen)
        return Change(restored.text, change.changed + restored.changed, change.left + restored.left)

    def redirect_urls(self, file: ConfigurationFile, chosen: frozenset[str]) -> Change:
        """Starts a recorder for each server that has a URL, and puts its address into the text."""
        restored = self.restore_urls(file, chosen)
        reasons = dict(restored.left)

        def local_address(entry: ServerEntry, address: str) -> str:
            if entry.name in reasons:
                raise Left(reasons[entry.name])
            return self._record(file, entry, address)

        return replace_addresses(restored.text, file.is_toml, chosen, local_address)

    def restore_urls(self, file: ConfigurationFile, chosen: frozenset[str]) -> Change:
        """Replaces the addresses of recorders by those of the servers."""
        # A server that was renamed meanwhile is known by the address of its recorder.
        originals = {
            flight.local_address: flight.address
            for flight in list_flights(self.root)
            if flight.address and flight.configuration == str(file.place)
        }
        left: list[tuple[str, str]] = []

        def original(entry: ServerEntry, address: str) -> str | None:
            folder = self._folder(file, entry.path)
            if address not in originals and _is_local(address) and folder.is_dir() and read_flight(folder) is None:
                about = folder / ABOUT
                left.append((entry.name, f"{address} may be a recorder's, and {about}, which says so, can't be read"))
            return originals.get(address)

        change = replace_addresses(file.text, file.is_toml, chosen, original)
        # An address with a variable or a password was never replaced.
        return Change(change.text, change.changed, left)

    def stop_recording(self, files: Iterable[Path]) -> tuple[list[tuple[Path, Change]], list[tuple[Path, LabError]]]:
        """Restores the addresses that the recorders of this process replaced, and stops the recorders.

        Each file is restored on its own. Returns the changes, and the files that could not be restored.
        """
        changes, failures = [], []
        for path in files:
            try:
                file = read_editable_configuration(path)
                change = replace_addresses(
                    file.text, file.is_toml, frozenset(), lambda _, address: self._recorded.get(address)
                )
                if change.changed:
                    file.save(change.text)
            except LabError as problem:
                failures.append((path, problem))
            else:
                changes.append((path, change))
        for recorder in self.recorders:
            recorder.stop()
        return changes, failures

    def _record(self, file: ConfigurationFile, entry: ServerEntry, address: str) -> str:
        folder = self._folder(file, entry.path)
        known = read_flight(folder)
        recorder = _start_recorder(f"{address}/", folder, urlsplit(known.local_address).port if known else None)
        self.recorders.append(recorder)
        local = recorder.url.removesuffix("/")
        self._recorded[local] = address
        _make(Flight(folder, entry.name, str(file.place), address, local))
        return local

    def _folder(self, file: ConfigurationFile, path: tuple[str, ...]) -> Path:
        return self.root / folder_name(file.place, path)


def _is_local(address: str) -> bool:
    """Whether an address may be a recorder's, which listens on this machine alone."""
    return urlsplit(address).hostname == "127.0.0.1"


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
