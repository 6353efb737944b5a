"""Replaces the addresses of servers that have a URL, so that a recorder can stand in front of them.

Only scheme, host and port change. Path and query stay as they are written, with their variables, because the recorder
passes every path of its address on to the same path of the server.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mcpace.lab.hosts.flight_wrap import Change, Edit, Left, change_text
from mcpace.lab.hosts.server_entries import ServerEntry

ADDRESS = re.compile(rb"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\])(?::\d{1,5})?(?=[/?#\"'])")

NewAddress = Callable[[ServerEntry, str], str | None]
"""From an entry and its address to its new address; ``None`` for an entry that shall stay as it is."""


def replace_addresses(text: str, toml: bool, chosen: frozenset[str], new_address: NewAddress) -> Change:
    """Replaces the addresses of the servers that have a URL; of those named ``chosen``, if any are.

    Raises :class:`UsageProblem` where the text can't be parsed.
    """
    return change_text(text, toml, chosen, lambda entry, encoded: _address_edits(entry, encoded, new_address))


def _address_edits(entry: ServerEntry, text: bytes, new_address: NewAddress) -> list[Edit]:
    url = entry.url()
    if url is None or entry.member("command") is not None:
        return []
    start = url.node.start + 1
    found = ADDRESS.match(text, start)
    if found is None:
        raise Left("its URL has a variable or a password in the place of its address, or no address")
    new = new_address(entry, found[0].decode())
    return [] if new is None else [Edit(start, found.end(), new.encode())]
