"""A case's ledger as one stacked bar: in seconds against the longest of its operation, or as shares of itself."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from mcpace.report import svg
from mcpace.report.labels import LAYERS, part_words, split_parts, split_words
from mcpace.report.quantities import duration, share
from mcpace.report.run import Ledger, ServerSplit

HEIGHT = 22
SLIVER = 0.6
"""Percent below which a whole bar is drawn as one mark: its parts would be thinner than the gaps between them."""

LABELLED_FROM = 14.0
"""Percent of the picture that a part needs to have its name written on it."""


def bar(ledger: Ledger, whole_s: float) -> Markup:
    """The parts one after another; the whole width stands for ``whole_s``."""
    total = ledger.total()
    parts, at = [], 0.0
    for name, seconds in ledger.parts().items():
        width = 100 * max(seconds, 0.0) / whole_s if whole_s > 0 else 0.0
        if width > 0:
            title = f"{name}: {duration(seconds)}, {share(seconds, total)} – {part_words(name)}"
            parts.append(svg.rect(at, width, 2, HEIGHT - 4, f"part {part_class(name)}", title))
        if width >= LABELLED_FROM:
            parts.append(svg.text(at + 0.8, HEIGHT / 2 + 4, name, f"inside on-{part_class(name)}"))
        if name == "server" and ledger.server_split and width > 0:
            parts += _layers(ledger.server_split, at, width)
        at += width
    if 0 < at < SLIVER:
        title = f"all parts: {duration(total)}"
        parts = [svg.rect(0, SLIVER, 2, HEIGHT - 4, "sliver", title)]
    return svg.picture(HEIGHT, ledger_words(ledger), parts, kind="ledger")


def _layers(split: ServerSplit, at: float, width: float) -> Iterator[Markup]:
    """The server's own account as a strip along the foot of its part."""
    layers = split_parts(split)
    whole = sum(layers.values())
    for name, seconds in layers.items() if whole > 0 else ():
        own = width * max(seconds, 0.0) / whole
        if own > 0:
            title = f"{name}: {duration(seconds)}, {share(seconds, whole)} of server – {LAYERS[name]}"
            yield svg.rect(at, own, HEIGHT - 7, 5, f"layer layer-{name}", title)
        at += own


def ledger_words(ledger: Ledger) -> str:
    """All parts in words."""
    parts = "; ".join(f"{name} {duration(seconds)}" for name, seconds in ledger.parts().items())
    return f"{parts}; {split_words(ledger.server_split)}" if ledger.server_split else parts


def part_class(name: str) -> str:
    """The class of a known part; parts are the model's own names, never a peer's."""
    return name.replace(".", "-")
