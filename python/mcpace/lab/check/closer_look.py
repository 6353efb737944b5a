"""A closer look at one server, in a start of its own: the imports of its interpreter, the stages of its package runner,
and the tokens of everything but tools that it gives to a host (instructions, prompts, resources).

Design constraint: the instrumented client keeps sizes and digests of replies, not their text, and no output on stderr.
So this start uses the runtime's client.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from mcpace import _core
from mcpace.lab import tokens
from mcpace.lab.check import import_times, runner_stages
from mcpace.lab.check.import_times import ImportTimes, parse_import_times
from mcpace.lab.check.runner_stages import Stages, parse_stages
from mcpace.lab.check.stamped_output import StampedOutput
from mcpace.lab.targets import Target
from mcpace.report.model.tokens import ContextTokens

MOST_PAGES = 50
"""Most pages of one listing that are read."""
LISTINGS = ("prompts", "resources", "resource_templates")
CAPABILITY = {"resource_templates": "resources"}
MEMBERS = {"resource_templates": "resourceTemplates"}


@dataclass(frozen=True)
class CloserLook:
    """Results of one start."""

    context: ContextTokens | None = None
    """``None`` without a tokenizer, and where the server didn't answer."""
    imports: ImportTimes | None = None
    """``None`` where no Python interpreter ran."""
    stages: Stages = field(default_factory=dict)
    """Empty where no package runner reported any."""


def look_closer(target: Target, limit_s: float) -> CloserLook:
    """Starts the server once. Nothing is found where it doesn't answer within the limit."""
    settings: dict[str, Any] = {"cache": False, "call_time_s": limit_s}
    if target.url is not None:
        settings["headers"] = [list(header) for header in target.headers]
        settings |= {"bearer": target.token} if target.token else {}
    # The runtime's client passes on no other environment than this.
    environment = {**os.environ, **dict(target.environment), **runner_stages.REPORTING, **import_times.REPORTING}
    # Windows has no named pipe that a shell could write to.
    with StampedOutput() if target.command and sys.platform != "win32" else nullcontext() as output:
        place: Any = target.url or list(output.command(target.command) if output is not None else target.command)
        try:
            caller = _core.Caller.connect(
                place,
                json.dumps(settings).encode(),
                _refuse_question,
                in_loop=False,
                environment=list(environment.items()) if target.command else None,
            ).wait()
        except (_core.CallProblem, _core.UsageProblem):
            return CloserLook()
        try:
            # Imports that come after the first answer are no part of the start.
            lines = output.lines() if output is not None else []
            context = _count_context(caller, time.monotonic() + limit_s)
        finally:
            caller.close().wait()
    printed = b"\n".join(line for _, line in lines)
    return CloserLook(context, parse_import_times(printed), parse_stages(lines))


def _count_context(caller: _core.Caller, until: float) -> ContextTokens | None:
    """Tokens of the texts that the server gives until this time of the monotonic clock."""
    if not tokens.has_tokenizer():
        return None
    try:
        _, _, text = caller.server()
        described = json.loads(text)
        capabilities = described.get("capabilities") or {}
        texts = [str(described.get("instructions") or "")]
        for kind in LISTINGS:
            items = _read_listing(caller, kind, until) if CAPABILITY.get(kind, kind) in capabilities else []
            texts.append(json.dumps(items, ensure_ascii=False, separators=(",", ":")) if items else "")
    except (_core.CallProblem, ValueError, AttributeError):
        return None
    instructions, prompts, resources, templates = tokens.count_tokens(texts)
    return ContextTokens(instructions=instructions, prompts=prompts, resources=resources + templates)


def _read_listing(caller: _core.Caller, kind: str, until: float) -> list[Any]:
    """The items of a listing, as far as its pages came in time; none where the server doesn't have this listing."""
    items: list[Any] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        if time.monotonic() >= until:
            break
        try:
            page = json.loads(caller.list(kind, cursor).wait())
        except _core.CallProblem:
            break
        items += page.get(MEMBERS.get(kind, kind)) or []
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            break
    return items


def _refuse_question(question: _core.Question) -> None:
    question.refuse(-32601, "this client answers no questions")
