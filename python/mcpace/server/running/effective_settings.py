"""The settings that a server is served with: the command line's, then the server object's own, then the defaults.

Design constraint: a line at start says which of the object's own settings apply, and which cannot.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mcpace.server.running.addresses import Address
from mcpace.server.running.prepared import Prepared
from mcpace.server.running.settings import Settings


def with_own_settings(
    prepared: Prepared, settings: Settings, parent: Address | None = None
) -> tuple[Prepared, Settings]:
    """Returns the server and the settings to serve it with. The server gets a note about its own settings that apply.

    ``parent`` is the address that the parent of several processes listens on. The parent has not loaded the object.
    Raises :class:`mcpace.server.running.errors.UsageProblem` for an invalid setting.
    """
    own = {name: value for name, value in prepared.settings.items() if name not in settings.given}
    if not own or not settings.is_http:
        return prepared, settings
    fixed = {"host", "port"} & set(own) if parent is not None else set()
    notes = list(prepared.notes)
    counting = {name: value for name, value in own.items() if name not in fixed}
    if counting:
        notes.append(f"settings of the server object: {_listed(counting)}; options of the command line override them")
    if fixed:
        missed = {name: own[name] for name in sorted(fixed)}
        words = " ".join(f"--{name} {value}" for name, value in missed.items())
        notes.append(f"settings of the server object that several processes and --reload don't use: add {words}")
    return replace(prepared, notes=tuple(notes)), settings.completed(counting)


def _listed(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_word(value)}" for name, value in settings.items())


def _word(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
