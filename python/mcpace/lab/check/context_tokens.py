"""Tokens of everything but tools that a server gives to a host: instructions, prompts and resources.

Design constraint: the instrumented client keeps sizes and digests of replies, not their text. So the server is started
once more, with the runtime's client, and nothing is timed.
"""

from __future__ import annotations

import json
import os
from typing import Any

from mcpace import _core
from mcpace.lab import tokens
from mcpace.lab.targets import Target
from mcpace.report.model.tokens import ContextTokens

MOST_PAGES = 50
"""Most pages of one listing that are read."""
WITHOUT_STDERR = ("sh", "-c", 'exec "$@" 2>/dev/null', "sh")
"""The words before a command whose stderr is dropped, which the runtime's client would pass on to the terminal. The
shell reads only this constant script: the words of the command are its arguments."""
LISTINGS = ("prompts", "resources", "resource_templates")
CAPABILITY = {"resource_templates": "resources"}
MEMBERS = {"resource_templates": "resourceTemplates"}


def count_context(target: Target, limit_s: float) -> ContextTokens | None:
    """Starts the server and counts; ``None`` without a tokenizer, and where the server doesn't answer."""
    if not tokens.has_tokenizer():
        return None
    settings: dict[str, Any] = {"cache": False, "call_time_s": limit_s}
    if target.url is not None:
        settings["headers"] = [list(header) for header in target.headers]
        settings |= {"bearer": target.token} if target.token else {}
    place: Any = [*WITHOUT_STDERR, *target.command] if target.command else target.url
    # The runtime's client passes on nothing else.
    environment = list({**os.environ, **dict(target.environment)}.items()) if target.command else None
    try:
        caller = _core.Caller.connect(
            place, json.dumps(settings).encode(), _refuse_question, in_loop=False, environment=environment
        ).wait()
    except (_core.CallProblem, _core.UsageProblem):
        return None
    try:
        _, _, text = caller.server()
        described = json.loads(text)
        capabilities = described.get("capabilities") or {}
        texts = [str(described.get("instructions") or "")]
        for kind in LISTINGS:
            items = _read_listing(caller, kind) if CAPABILITY.get(kind, kind) in capabilities else []
            texts.append(json.dumps(items, ensure_ascii=False, separators=(",", ":")) if items else "")
    except (_core.CallProblem, ValueError, AttributeError):
        return None
    finally:
        caller.close().wait()
    instructions, prompts, resources, templates = tokens.count_tokens(texts)
    return ContextTokens(instructions=instructions, prompts=prompts, resources=resources + templates)


def _read_listing(caller: _core.Caller, kind: str) -> list[Any]:
    """All items of a listing; none where the server doesn't have this listing."""
    items: list[Any] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
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
