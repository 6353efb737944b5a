"""Compares two transcripts: the places where they differ, and the documented differences among them."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probes import Transcript

DOCUMENTED = Path(__file__).with_name("differences.toml")
ABSENT = "(absent)"
VOLATILE = [
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE), "<uuid>"),
    (re.compile(r"\b[0-9a-f]{32,64}\b"), "<hex>"),
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "<address>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"/tmp/compat-\w+"), "<folder>"),
    (re.compile(r"(127\.0\.0\.1|localhost):\d{4,5}"), "<here>"),
    (re.compile(r"_served_\w+"), "<module>"),
    (re.compile(r"/(original|swapped)/"), "/<tree>/"),
]
"""Patterns of the parts of texts that differ between runs."""
QUIET = {"progressToken", "io.modelcontextprotocol/subscriptionId", "requestState"}
"""Members whose values the server or the client chooses freely."""


@dataclass(frozen=True)
class Spot:
    """One place where two transcripts differ."""

    step: str
    path: str
    left: str
    right: str

    @property
    def place(self) -> tuple[str, str]:
        return (self.step, self.path)

    def to_json(self) -> dict[str, str]:
        return {"step": self.step, "path": self.path, "original": self.left, "other": self.right}


@dataclass(frozen=True)
class Documented:
    """A documented difference."""

    name: str
    ways: frozenset[str]
    lines: frozenset[str]
    """The SDK lines in which it must occur."""
    step: re.Pattern[str]
    path: re.Pattern[str]
    left: re.Pattern[str]
    right: re.Pattern[str]
    objects: re.Pattern[str]
    run: re.Pattern[str]
    reason: str
    anchor: str
    optional: bool = False
    """Whether a run over whole corpora need not show the difference: only servers of this repository do, or chance."""

    def covers(self, way: str, line: str, name: str, run: str, spot: Spot) -> bool:
        return bool(
            way in self.ways
            and line in self.lines
            and self.run.search(run)
            and self.objects.search(name)
            and self.step.search(spot.step)
            and self.path.search(spot.path)
            and self.left.search(spot.left)
            and self.right.search(spot.right)
        )


def documented(file: Path = DOCUMENTED) -> list[Documented]:
    """Reads the list of documented differences. A missing pattern of an entry matches anything."""
    found = []
    for name, entry in tomllib.loads(file.read_text()).items():
        patterns = {key: re.compile(entry.pop(key, "")) for key in ("step", "path", "left", "right", "objects", "run")}
        ways, lines = frozenset(entry.pop("ways")), frozenset(entry.pop("lines"))
        found.append(Documented(name=name, ways=ways, lines=lines, **patterns, **entry))
    return found


def differences(original: Transcript, other: Transcript) -> list[Spot]:
    """Every place where the other server's answers differ, apart from volatile values."""
    spots = []
    for label in [*original.answers, *(label for label in other.answers if label not in original.answers)]:
        left, right = original.answers.get(label, ABSENT), other.answers.get(label, ABSENT)
        spots += [Spot(label, path, one, two) for path, one, two in _walk(normal(left), normal(right), "")]
    spots += _messages(original, other)
    if original.end != other.end:
        spots.append(Spot("end", "", original.end or "", other.end or ""))
    return spots


def normal(value: Any) -> Any:
    """A value without the parts that differ between runs."""
    if isinstance(value, dict):
        return {key: "<any>" if key in QUIET else normal(one) for key, one in value.items()}
    if isinstance(value, list):
        return [normal(one) for one in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        for pattern, stand_in in VOLATILE:
            value = pattern.sub(stand_in, value)
    return value


def _messages(original: Transcript, other: Transcript) -> Iterator[Spot]:
    """Compares notifications and questions as multisets, because the server chooses the stream and the time."""
    left, right = _counted(original.messages), _counted(other.messages)
    missing, added = left - right, right - left
    for counter, is_missing in ((missing, True), (added, False)):
        for text, count in counter.items():
            told = json.loads(text)
            where = next(label for label, one in (original if is_missing else other).messages if _text(one) == text)
            sides = (text, ABSENT) if is_missing else (ABSENT, text)
            path = f"messages.{told.get('method', 'result')}"
            yield from (Spot(where, path, *sides) for _ in range(count))


def _counted(messages: Iterable[tuple[str, dict[str, Any]]]) -> Counter[str]:
    return Counter(_text(told) for _, told in messages)


def _text(told: dict[str, Any]) -> str:
    return json.dumps(
        {key: normal(value) for key, value in told.items() if key not in ("id", "jsonrpc")}, sort_keys=True
    )


def _walk(left: Any, right: Any, path: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in [*left, *(key for key in right if key not in left)]:
            yield from _walk(left.get(key, ABSENT), right.get(key, ABSENT), f"{path}.{key}" if path else key)
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for number, (one, two) in enumerate(zip(left, right, strict=True)):
            yield from _walk(one, two, f"{path}[{number}]")
    elif isinstance(left, list) and isinstance(right, list) and _named(left) and _named(right):
        names = {_name(one): one for one in left}, {_name(one): one for one in right}
        for name in [*names[0], *(name for name in names[1] if name not in names[0])]:
            yield from _walk(names[0].get(name, ABSENT), names[1].get(name, ABSENT), f"{path}[{name}]")
    elif type(left) is not type(right) or left != right:
        texts = _json_texts(left, right)
        if texts is not None:
            yield from _walk(*texts, f"{path}(json)")
        else:
            yield path, _shown(left), _shown(right)


def _json_texts(left: Any, right: Any) -> tuple[Any, Any] | None:
    """Compares two JSON texts as values. A different layout of equal values is a separate difference."""
    if not (isinstance(left, str) and isinstance(right, str)):
        return None
    try:
        one, two = json.loads(left), json.loads(right)
    except ValueError:
        return None
    return (one, two) if isinstance(one, dict | list) and one != two else None


def _named(values: list[Any]) -> bool:
    return all(isinstance(one, dict) and _name(one) for one in values)


def _name(one: dict[str, Any]) -> Any:
    return one.get("name") or one.get("uri")


def _shown(value: Any) -> str:
    return value if value == ABSENT else json.dumps(value, ensure_ascii=False)
