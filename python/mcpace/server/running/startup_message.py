"""The start message: the server, its address, and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpace import __version__
from mcpace.server.running.addresses import Address
from mcpace.server.running.messages import line, say
from mcpace.server.running.prepared import Prepared
from mcpace.server.running.settings import Settings


def startup_facts(prepared: Prepared, settings: Settings, url: str) -> dict[str, Any]:
    """The values that :func:`print_startup` needs, which a worker sends to its parent."""
    return {
        "name": prepared.name,
        "tools": prepared.tools,
        "resources": prepared.resources,
        "prompts": prepared.prompts,
        "notes": list(prepared.notes),
        "url": url,
        "stateless": settings.stateless,
        "json_response": settings.json_response,
    }


def print_startup(facts: Mapping[str, Any], settings: Settings, address: Address | None) -> None:
    """Prints the start message: the first line names the server and the address, and notes follow.

    A quiet server prints the notes only.
    """
    if not settings.quiet:
        line(first_line(facts, settings))
    for note in facts["notes"]:
        say(note)
    if address is not None and not address.is_loopback:
        _warn_of_the_world(settings, address)


def first_line(facts: Mapping[str, Any], settings: Settings) -> str:
    """``mcpace 0.1.0 serving NAME: 3 tools, 1 resource at http://127.0.0.1:8000/mcp (2 workers, sessions)``."""
    counts = [_count(facts[f"{what}s"], what) for what in ("tool", "resource", "prompt") if facts[f"{what}s"]]
    what = f"mcpace {__version__} serving {facts['name']}: {', '.join(counts) or 'nothing yet'}"
    if not settings.is_http:
        return f"{what} on stdio"
    ways = [f"{settings.workers} workers"] if settings.workers > 1 else []
    ways.append("no sessions" if facts["stateless"] else "sessions")
    if facts["json_response"]:
        ways.append("JSON only")
    if settings.reload:
        ways.append("reloads")
    return f"{what} at {facts['url']} ({', '.join(ways)})"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _warn_of_the_world(settings: Settings, address: Address) -> None:
    if "*" in settings.allowed_hosts:
        return
    known = ["localhost", *([] if address.is_any else [address.host]), *settings.allowed_hosts]
    more = "" if settings.allowed_hosts else "; name the one that clients use with --allowed-host"
    say(f"other machines reach it; requests must name the host {' or '.join(known)}{more}")
