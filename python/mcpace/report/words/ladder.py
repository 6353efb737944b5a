"""The sentences of the ladder: the layer of a live target in which the time of a call is.

Design constraint: a sentence states only facts that the Run holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcpace.report.model.ladder import Ladder, Rung
from mcpace.report.model.run import Run
from mcpace.report.words import findings
from mcpace.report.words.quantities import clean, duration, join_words, share

MOST = 0.5
"""A layer is named alone where it takes at least this share of a call."""
NOTABLE = 0.1
"""Smallest share of a layer that is named among others."""

RUNGS: dict[str, str] = {
    "tcp": "TCP connect",
    "tls": "TLS handshake",
    "http": "HTTP, unknown path",
    "ping": "ping",
    "list": "tools/list",
    "unknown-tool": "tools/call, unknown tool",
    "tool": "tools/call",
}
LAYER_OF = {"tcp": "network", "http": "http", "ping": "sdk", "unknown-tool": "dispatch", "tool": "tool"}


@dataclass(frozen=True)
class LayerWords:
    """The name of a layer, and the clause that locates time in it."""

    name: str
    place: str


LAYERS: dict[str, LayerWords] = {
    "network": LayerWords("network", "on the way to the server: connecting alone takes as long"),
    "http": LayerWords("HTTP", "before any MCP code: a path that doesn't exist takes as long"),
    "sdk": LayerWords("every MCP request", "in what the server does for every MCP request: a ping takes as long"),
    "dispatch": LayerWords("every tool call", "in what precedes every tool: a tool that doesn't exist takes as long"),
    "tool": LayerWords("the tool", "in the tool itself"),
}


def rung_words(rung: Rung) -> str:
    """The request of a rung, with its HTTP status."""
    name = RUNGS.get(rung.code, clean(rung.code, 40))
    return f"{name} ({clean(rung.answer, 24)})" if rung.code == "http" and rung.answer else name


def sentences(run: Run) -> list[str]:
    """The layer that takes most of a call; several layers where none takes most."""
    known = [layer for layer in run.ladder.layers if layer.code in LAYERS] if run.ladder else []
    whole_s = sum(layer.seconds for layer in known)
    if whole_s <= 0:
        return []
    largest = sorted(known, key=lambda layer: layer.seconds, reverse=True)
    if largest[0].seconds >= MOST * whole_s:
        first = largest[0]
        return [f"{share(first.seconds, whole_s)} of it ({duration(first.seconds)}) is {LAYERS[first.code].place}."]
    named = [layer for layer in largest if layer.seconds >= NOTABLE * whole_s]
    parts = [f"{LAYERS[layer.code].name} {share(layer.seconds, whole_s)}" for layer in named]
    return [f"No layer takes most of it: {join_words(parts)}."]


def overlap_sentences(ladder: Ladder) -> list[str]:
    """Whether two calls run at the same time, and whether other requests wait for them."""
    if not ladder.overlaps:
        return []
    one, last = ladder.overlaps[0], ladder.overlaps[-1]
    pair = f"Two calls at once end after {duration(one.first_s)} and {duration(one.both_s)}"
    if ladder.cause:
        more = " In two sessions they run at the same time." if ladder.cause == "serial-session" else ""
        return [f"{pair}: {findings.clause_for(ladder.cause)}.{more}"]
    waits = "a ping between them waits, too" if last.ping_waited else "a ping between them doesn't wait"
    match one.order:
        case "parallel":
            waited = f", but a ping between them takes {duration(one.ping_s)}" if one.ping_waited else ""
            return [f"{pair}: they run at the same time{waited}."]
        case "serial":
            cause = "" if last.ping_waited else ". The calls share a lock, a connection or a pool of one"
            return [f"{pair}: one after another; {waits}{cause}."]
        case "shared":
            return [f"{pair}: they run at the same time, each at half the speed, as on one processor; {waits}."]
    return []


def notes(ladder: Ladder) -> list[str]:
    """Notes of the table: what a new connection adds, and why a rung was not measured."""
    medians = {rung.code: rung.median_s for rung in ladder.rungs if rung.median_s is not None}
    told = []
    if "tls" in medians and "tcp" in medians:
        told.append(f"A new connection adds {duration(medians['tcp'] + medians['tls'])} to a call.")
    failed = [rung for rung in ladder.rungs if rung.failure]
    told += [f"{RUNGS.get(rung.code, clean(rung.code, 40))}: {clean(rung.failure, 120)}." for rung in failed]
    return [*told, *overlap_sentences(ladder)]
