"""The sentences of a comparison of listings.

Design constraint: names and values come from servers. Each is one clean line of limited length.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcpace.report.model.drift import LEVELS, Drift, Level, ListingChange
from mcpace.report.words.quantities import clean, count, join_words

LONGEST = 120
MOST_NAMED = 2
MOST_TOOLS = 4
MOST_NOTES = 40
NAMES: dict[Level, str] = {"breaking": "breaking change", "widening": "widening", "wording": "change of wording"}
PLURALS: dict[Level, str] = {"widening": "widenings", "wording": "changes of wording"}
MODES = {"call": "a plain call", "task": "a task"}
HINTS = {
    "not destructive": ("may destroy data now", "destroys no data now"),
    "closed world": ("may reach external systems now", "reaches no external systems now"),
}
"""Words for the promises of a tool's annotations that begin with a denial: of a lost one, and of a new one."""


def sentences(drifts: Sequence[Drift]) -> list[str]:
    """The verdict on the listings, in at most one sentence each."""
    return [_sentence(one) for one in drifts]


def notes(drift: Drift) -> list[str]:
    """All changes, the gravest first. Tools with the same change share a sentence."""
    told = [f"{level.capitalize()}: {words}." for level in LEVELS for words in _grouped(drift, level)]
    return [*told[:MOST_NOTES], *_more(len(told) - MOST_NOTES), *_more(drift.left_out)]


def change_words(change: ListingChange) -> str:
    """One change: ``search: parameter limit is required now``."""
    return _named([change.name] if change.name else [], _predicate(change))


def _sentence(drift: Drift) -> str:
    if not drift.changes:
        return "The listing of the tools is unchanged."
    parts = []
    for level, words in NAMES.items():
        number = sum(1 for change in drift.changes if change.level == level)
        if number:
            groups = _grouped(drift, level) if level == "breaking" else []
            named = [*groups[:MOST_NAMED], *(text.rstrip(".") for text in _more(len(groups) - MOST_NAMED))]
            details = f" ({'; '.join(named)})" if named else ""
            parts.append(f"{count(number, words, PLURALS.get(level))}{details}")
    return f"The listing of the tools has {join_words(parts)}."


def _grouped(drift: Drift, level: Level) -> list[str]:
    """The changes of one level, one text for all tools with the same change."""
    groups: dict[str, list[str]] = {}
    for change in drift.changes:
        if change.level == level:
            groups.setdefault(_predicate(change), []).extend([change.name] if change.name else [])
    return [_named(names, predicate) for predicate, names in groups.items()]


def _named(names: list[str], predicate: str) -> str:
    told = [clean(name, LONGEST) for name in names[:MOST_TOOLS]]
    more = [f"{len(names) - MOST_TOOLS} more"] if len(names) > MOST_TOOLS else []
    return f"{join_words([*told, *more])}: {predicate}" if names else predicate


def _more(number: int) -> list[str]:
    return [f"{count(number, 'more change')}."] if number > 0 else []


def _predicate(change: ListingChange) -> str:
    place = clean(change.place, LONGEST)
    values = " → ".join(clean(text, LONGEST) or "none" for text in (change.before, change.after))
    is_gone = change.kind == "removed"
    match change.part:
        case "listing" if change.kind == "changed":
            return f"{place}: {values}"
        case "listing":
            return f"the tool is {'gone' if is_gone else 'new'}"
        case "hints":
            lost, gained = HINTS.get(change.place, (f"no longer {place}", f"{place} now"))
            return lost if is_gone else gained
        case "execution":
            return f"{'no longer runs' if is_gone else 'runs now'} as {MODES.get(place, place)}"
        case "result":
            return f"results {'no longer have' if is_gone else 'have new'} content: {place}"
        case "text":
            return f"{place} changed: {values}"
        case "input":
            return _input_words(change, place, values)
        case "output":
            return _output_words(change, place, values)


def _input_words(change: ListingChange, place: str, values: str) -> str:
    if _is_about_unlisted(change):
        what = "accepted" if change.kind == "wider" else "refused"
        return f"parameters that are not listed are {what} now{_inside(place)}"
    what = f"parameter {place}" if place else "the object of parameters"
    match change.kind:
        case "removed":
            return f"{what} is gone{_type(change)}"
        case "added":
            return f"{what} is new and optional{_type(change)}"
        case "required":
            return f"{what} is new and required{_type(change)}" if change.after else f"{what} is required now"
        case "optional":
            return f"{what} is optional now"
        case "narrower":
            return f"{what} accepts less: {values}"
        case "wider":
            return f"{what} accepts more: {values}"
        case "changed":
            return f"{what} accepts other values: {values}"


def _output_words(change: ListingChange, place: str, values: str) -> str:
    if _is_about_unlisted(change):
        what = "possible" if change.kind == "wider" else "excluded"
        return f"result members that are not listed are {what} now{_inside(place)}"
    what = f"result member {place}" if place else "the output schema"
    match change.kind:
        case "removed":
            return f"{what} is gone{_type(change)}"
        case "added":
            return f"{what} is new{_type(change)}"
        case "required":
            return f"{what} is always present now"
        case "optional":
            return f"{what} may be missing now"
        case "narrower":
            return f"{what} has fewer values: {values}"
        case "wider":
            return f"{what} has more values: {values}"
        case "changed":
            return f"{what} has other values: {values}"


def _is_about_unlisted(change: ListingChange) -> bool:
    """Whether an object began or ceased to accept members that it does not list."""
    has_values = change.before or change.after
    return change.kind in ("narrower", "wider") and change.place.endswith("*") and not has_values


def _inside(place: str) -> str:
    return f" in {place.removesuffix('.*')}" if place != "*" else ""


def _type(change: ListingChange) -> str:
    words = clean(change.before or change.after, LONGEST)
    return f" ({words})" if words else ""
