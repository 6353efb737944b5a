"""Comparison of two listings: the tools, their schemas, annotations and words, and the kinds of their results.

A change is breaking where a caller that worked with the first listing may fail with the second one. The hints of a tool
are promises to the host: a tool that stops being read-only is a breaking change, because hosts call read-only tools
without asking.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from mcpace.lab import tokens
from mcpace.lab.compare.schema_changes import schema_changes, shorten
from mcpace.lab.compare.schema_inclusion import Limits
from mcpace.lab.tool_schema import listing_bytes
from mcpace.report.model.drift import LEVELS, Drift, Kind, Level, Listing, ListingChange, ListingSize, Part
from mcpace.report.model.run import Case

MOST_CHANGES = 500
TEXTS = ("title", "description")
RUN_MODES = {"forbidden": {"call"}, "optional": {"call", "task"}, "required": {"task"}}
"""Ways to run a tool, by ``execution.taskSupport``."""


def compare_cases(pairs: Iterable[tuple[Case, Case]]) -> list[Drift]:
    """Compares the listings of all pairs of cases that have one on both sides.

    Changes in the kinds of a tool's results are added to the comparison of the listings of the same targets.
    """
    found: dict[tuple[str, str], Drift] = {}
    several = list(pairs)
    for base, now in several:
        if base.listing is not None and now.listing is not None:
            found[base.target, now.target] = compare_listings(base.listing, now.listing, base.target, now.target)
    for base, now in several:
        drift = found.get((base.target, now.target))
        if drift is not None and base.result_kinds and now.result_kinds:
            drift.changes += _result_changes(now.tool or "", base.result_kinds, now.result_kinds)
            drift.changes.sort(key=lambda one: LEVELS.index(one.level))
    return list(found.values())


def compare_listings(base: Listing, now: Listing, base_target: str, target: str) -> Drift:
    """Compares two listings."""
    limits = Limits()
    old, new = _by_name(base.tools), _by_name(now.tools)
    changes = []
    if base.revision != now.revision:
        changes.append(_change("wording", "", "listing", "changed", "protocol revision", base.revision, now.revision))
    for name, tool in old.items():
        if name not in new:
            changes.append(_change("breaking", name, "listing", "removed"))
        else:
            changes += _tool_changes(name, tool, new[name], limits)
    changes += [_change("widening", name, "listing", "added") for name in new if name not in old]
    changes.sort(key=lambda one: LEVELS.index(one.level))
    return Drift(
        base_target=base_target,
        target=target,
        base_server=f"{base.server} {base.version}".strip(),
        now_server=f"{now.server} {now.version}".strip(),
        changes=changes[:MOST_CHANGES],
        left_out=max(len(changes) - MOST_CHANGES, 0),
        sizes=[_size("", base.tools, now.tools), *_tool_sizes(old, new)],
    )


def _tool_changes(name: str, base: dict[str, Any], now: dict[str, Any], limits: Limits) -> Iterator[ListingChange]:
    # A tool without a schema of its arguments takes an object without members.
    yield from schema_changes(base.get("inputSchema", {}), now.get("inputSchema", {}), name, "input", limits)
    yield from _output_changes(name, base.get("outputSchema"), now.get("outputSchema"), limits)
    before, after = _promises(base), _promises(now)
    for promise in sorted(before ^ after):
        lost = promise in before
        yield _change("breaking" if lost else "widening", name, "hints", "removed" if lost else "added", promise)
    modes = [RUN_MODES.get(str(_dict(tool.get("execution")).get("taskSupport")), {"call"}) for tool in (base, now)]
    for mode in sorted(modes[0] ^ modes[1]):
        lost = mode in modes[0]
        yield _change("breaking" if lost else "widening", name, "execution", "removed" if lost else "added", mode)
    words = [{**_dict(tool.get("annotations")), **tool} for tool in (base, now)]
    for key in TEXTS:
        if words[0].get(key) != words[1].get(key):
            old, new = shorten(words[0].get(key)), shorten(words[1].get(key))
            yield _change("wording", name, "text", "changed", key, old, new)


def _output_changes(name: str, base: Any, now: Any, limits: Limits) -> Iterator[ListingChange]:
    if base is not None and now is not None:
        yield from schema_changes(base, now, name, "output", limits)
    elif base is not None:
        yield _change("breaking", name, "output", "removed")
    elif now is not None:
        yield _change("widening", name, "output", "added")


def _promises(tool: dict[str, Any]) -> set[str]:
    """The promises of a tool's annotations to a host. The defaults of the protocol promise nothing."""
    hints = _dict(tool.get("annotations"))
    is_read_only = hints.get("readOnlyHint") is True
    promises = {
        "read-only": is_read_only,
        "not destructive": is_read_only or hints.get("destructiveHint") is False,
        "idempotent": is_read_only or hints.get("idempotentHint") is True,
        "closed world": hints.get("openWorldHint") is False,
    }
    return {name for name, is_made in promises.items() if is_made}


def _result_changes(tool: str, base: list[str], now: list[str]) -> Iterator[ListingChange]:
    for kind in sorted(set(base) ^ set(now)):
        lost = kind in base
        yield _change("breaking" if lost else "widening", tool, "result", "removed" if lost else "added", kind)


def _change(
    level: Level, name: str, part: Part, kind: Kind, place: str = "", before: str = "", after: str = ""
) -> ListingChange:
    return ListingChange(
        level=level,
        item="tool" if name else "server",
        name=name,
        part=part,
        kind=kind,
        place=place,
        before=before,
        after=after,
    )


def _tool_sizes(old: dict[str, Any], new: dict[str, Any]) -> list[ListingSize]:
    """Sizes of the tools whose descriptions differ, the largest change first."""
    names = [name for name in old | new if _text(old.get(name)) != _text(new.get(name))]
    sizes = [_size(name, *([side[name]] if name in side else None for side in (old, new))) for name in names]
    return sorted(sizes, key=lambda one: -abs((one.now_bytes or 0) - (one.base_bytes or 0)))[:MOST_CHANGES]


def _size(name: str, base: list[dict[str, Any]] | None, now: list[dict[str, Any]] | None) -> ListingSize:
    """The sizes of some tools on both sides."""
    return ListingSize(
        name=name,
        base_bytes=None if base is None else listing_bytes(base),
        now_bytes=None if now is None else listing_bytes(now),
        base_tokens=_tokens(base),
        now_tokens=_tokens(now),
    )


def _tokens(tools: list[dict[str, Any]] | None) -> int | None:
    """Tokens that hosts give to the model for the tools; ``None`` without a tokenizer."""
    if tools is None or not tokens.has_tokenizer():
        return None
    return sum(one.tokens for one in tokens.tool_tokens(tools))


def _by_name(tools: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The tools by name. Hosts call the first of several tools with one name."""
    found: dict[str, dict[str, Any]] = {}
    for tool in tools:
        found.setdefault(str(tool.get("name", "")), tool)
    return found


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
