"""The sentences of the ladder: the layer of a live target in which the time of a call is.

Design constraint: a sentence states only facts that the Run holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcpace.report.model.ladder import Ladder, Rung
from mcpace.report.model.run import Run
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


def notes(ladder: Ladder) -> list[str]:
    """Notes of the table: what a new connection adds, and why a rung was not measured."""
    medians = {rung.code: rung.median_s for rung in ladder.rungs if rung.median_s is not None}
    told = []
    if "tls" in medians and "tcp" in medians:
        told.append(f"A new connection adds {duration(medians['tcp'] + medians['tls'])} to a call.")
    failed = [rung for rung in ladder.rungs if rung.failure]
    return told + [f"{RUNGS.get(rung.code, clean(rung.code, 40))}: {clean(rung.failure, 120)}." for rung in failed]
