"""Random runs of every kind within the schema: hostile names, odd numbers, missing parts.

Values are generated from the models' annotations, so that a new member is tested automatically. A seed determines one
run.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from mcpace.report.model.base import LARGEST
from mcpace.report.model.run import Kind, Run

EVIL = "x\x1b]0;y\x07\x9b31m\u202e\u2066\u200b\ufeff\n\r\t<script>`|é"
REPORT = Path(__file__).parents[3] / "python" / "mcpace" / "report"
TAME = (0, 1, 2, 3, 5, 20)
WILD = (LARGEST, 10**15)
TAME_TIMES = (0.0, 0.001, 0.0012, 0.04, 1.5)
WILD_TIMES = (5e-324, 1e-300, 1e-12, -1.0, 1e9, LARGEST, -LARGEST)
KINDS = get_args(Kind)
ROOM = 7
"""Models inside of each other."""


def source_words() -> list[str]:
    """All names in the sources of the report: codes, roles, members of contexts."""
    sources = " ".join(path.read_text() for path in sorted(REPORT.glob("**/*.py")))
    return sorted(set(re.findall(r'"([a-z][a-z0-9_.-]{2,30})"', sources)))


NAMES = source_words()


def any_run(kind: str, seed: int) -> Run:
    """Returns a random valid run of a kind."""
    made = Maker(random.Random(f"{kind} {seed}"), wild=seed % 2 == 1).model(Run, 0)
    made["kind"] = kind
    return Run.from_json(json.dumps(made))


def within(value: Any, limits: list[Any]) -> Any:
    """Moves a value into the limits of its member."""
    for limit in limits if isinstance(value, int | float) else ():
        value = max(value, limit.ge) if hasattr(limit, "ge") else value
        value = min(value, limit.le) if hasattr(limit, "le") else value
    return value


class Maker:
    """Creates random plain data, as JSON has it."""

    def __init__(self, dice: random.Random, *, wild: bool) -> None:
        self._dice = dice
        self._whole = TAME + WILD if wild else TAME
        self._times = TAME_TIMES + WILD_TIMES if wild else TAME_TIMES

    def model(self, of: type[BaseModel], depth: int) -> dict[str, Any]:
        """Returns a random model. Some optional members are left out."""
        told = {}
        annotations = get_type_hints(of, include_extras=True)
        for name, field in of.model_fields.items():
            if field.is_required() or self._dice.random() < 0.75:
                told[field.alias or name] = within(self.value(annotations[name], depth), field.metadata)
        if "layer" in told:
            told.pop("load", None) if self._dice.random() < 0.8 else None
        return told

    def value(self, of: Any, depth: int) -> Any:
        """Creates a random value for a type annotation."""
        origin, inner = get_origin(of), get_args(of)
        if origin is Literal:
            return self._dice.choice(inner)
        if origin in (Union, UnionType):
            choices = [one for one in inner if one is not NoneType]
            return None if NoneType in inner and self._dice.random() < 0.3 else self.value(choices[0], depth)
        if origin is list:
            return [self.value(inner[0], depth + 1) for _ in range(self._many(depth))]
        if origin is tuple:
            return [self.value(one, depth + 1) for one in inner]
        if origin is dict:
            return {self.value(inner[0], depth): self.value(inner[1], depth + 1) for _ in range(self._many(depth))}
        if origin is not None:  # Annotated
            return self.value(inner[0], depth)
        if isinstance(of, type) and issubclass(of, BaseModel):
            return self.model(of, depth + 1)
        return self._plain(of, depth)

    def _plain(self, of: Any, depth: int) -> Any:
        if of is bool:
            return self._dice.random() < 0.5
        if of is int:
            return self._dice.choice(self._whole)
        if of is float:
            return self._dice.choice(self._times)
        if of is str:
            return self._dice.choice((EVIL, "", "python@1.2.0", "1" * 5000, *self._dice.choices(NAMES, k=12)))
        assert of is Any, of
        return self.value(self._dice.choice((bool, int, float, str, list[str], str | None)), depth)

    def _many(self, depth: int) -> int:
        return self._dice.randrange(4) if depth < ROOM else 0
