"""Counts tokens of listings and results with the encoding of OpenAI's current models.

Design constraints: the ranks of the encoding are inside an installed package, so nothing is loaded over the network.
The count is exact for models of that encoding and for the text that is counted; other models (Claude, Gemini) count
differently, and hosts add text of their own around each tool. Without the package there is no count.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from mcpace.lab.errors import LabError
from mcpace.report.model.tokens import ToolTokens

Encoding = Literal["o200k_base", "cl100k_base"]
ENCODING: Encoding = "o200k_base"
PACKAGE = "toktok"


def has_tokenizer() -> bool:
    """Whether tokens can be counted in this environment."""
    return importlib.util.find_spec(PACKAGE) is not None


def require_tokenizer() -> None:
    """Raises :class:`LabError` where tokens can't be counted."""
    if not has_tokenizer():
        raise LabError("counting tokens needs the package toktok-rs: pip install 'mcpace[lab]'")


def count_tokens(texts: Sequence[str], encoding: Encoding = ENCODING) -> list[int]:
    """Tokens of each text. Text that looks like a special token counts as ordinary text."""
    import toktok  # imported late: the ranks take memory, and few commands count

    # Half of a surrogate pair has no bytes; the replacement is what a host would send.
    clean = [text.encode("utf-8", "replace").decode() for text in texts]
    return [int(number) for number in toktok.batch_count(clean, encoding, threads=1)]


def tool_tokens(tools: Sequence[Mapping[str, Any]]) -> list[ToolTokens]:
    """Tokens of each tool of a listing, in the order of the listing; empty without a tokenizer."""
    if not has_tokenizer():
        return []
    texts: list[str] = []
    for tool in tools:
        shown = {key: tool[key] for key in ("name", "description", "inputSchema") if key in tool}
        texts += [_json(shown), str(tool.get("description") or "")]
        texts += [_json(tool[key]) if tool.get(key) else "" for key in ("inputSchema", "outputSchema")]
    counts = iter(count_tokens(texts))
    return [
        ToolTokens(
            name=str(tool.get("name")),
            tokens=next(counts),
            description=next(counts),
            input_schema=next(counts),
            output_schema=next(counts),
            bytes=len(_json(tool).encode("utf-8", "replace")),
        )
        for tool in tools
    ]


def result_tokens(result: Mapping[str, Any]) -> int | None:
    """Tokens of a tool's result as a model reads it: its text, or its structured content where it has no text.

    Images and audio are not counted. ``None`` without a tokenizer.
    """
    return sum(count_tokens(list(_result_texts(result)))) if has_tokenizer() else None


def _result_texts(result: Mapping[str, Any]) -> Iterable[str]:
    content = result.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    resources = [block["resource"] for block in blocks if isinstance(block.get("resource"), dict)]
    texts = [block["text"] for block in (*blocks, *resources) if isinstance(block.get("text"), str)]
    if not texts and result.get("structuredContent") is not None:
        texts = [_json(result["structuredContent"])]
    return texts


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
