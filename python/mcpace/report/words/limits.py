"""Words for the time limits of clients."""

from __future__ import annotations

from mcpace.report.model.limits import ClientLimits, LimitFacts, LimitLayer
from mcpace.report.words.quantities import clean, duration

LAYERS: dict[LimitLayer, str] = {
    "connect": "the server accepts no connection",
    "head": "the head of the reply does not come",
    "idle": "the head has come, and then nothing",
    "tool": "the stream is kept alive by comments",
    "progress": "progress comes for the call",
    "body": "the answer comes in small parts",
}
"""Behaviour of the server while a client waits, by layer."""
LONGEST = 120


def cell(facts: LimitFacts) -> str:
    """``60.0 s``, ``> 90 s`` or ``–``."""
    if facts.unknown:
        return "–"
    if facts.limit_s is None:
        return f"> {facts.tried_s:g} s"
    return duration(facts.limit_s)


def sentences(clients: list[ClientLimits]) -> list[str]:
    """The verdict: the shortest limit of each client, and clients that progress does not keep waiting."""
    told = []
    for client in clients:
        name = clean(client.subject, 60)
        limits = {facts.layer: facts for facts in client.layers if not facts.unknown}
        found = [facts for facts in limits.values() if facts.limit_s is not None and facts.layer != "connect"]
        if not limits:
            told.append(f"{name} could not be tried.")
        elif not found:
            tried = max(facts.tried_s for facts in limits.values())
            told.append(f"{name} waits longer than {tried:g} s for the answer of a tool.")
        else:
            first = min(found, key=lambda facts: facts.limit_s or 0.0)
            told.append(f"{name} gives up a call after {duration(first.limit_s or 0.0)} where {LAYERS[first.layer]}.")
        progress = limits.get("progress")
        if progress is not None and progress.limit_s is not None:
            told.append(f"{name} gives up after {duration(progress.limit_s)} although progress comes.")
    return told or ["No client was tried."]


def notes(clients: list[ClientLimits]) -> list[str]:
    """The meaning of the columns, the proven bounds, and the reasons of missing results."""
    told = ["; ".join(f"{layer}: {words}" for layer, words in LAYERS.items()) + "."]
    for client in clients:
        name = clean(client.subject, 60)
        if client.error:
            told.append(f"{name}: {clean(client.error, LONGEST)}")
        for facts in client.layers:
            if facts.unknown:
                told.append(f"{name}, {facts.layer}: no result: {clean(facts.unknown, LONGEST)}")
            elif facts.limit_s is not None:
                taken = f" (an answer after {duration(facts.answered_s)} was taken)" if facts.answered_s else ""
                told.append(f"{name}, {facts.layer}: {clean(facts.message, LONGEST)}{taken}")
    return told
