"""TOON as a tool's text: less for a model to read where data is a list of like things.

``output_format="toon"`` writes data so, ``"auto"`` where that is shorter than the JSON would be. Structured content
stays JSON. The format and its package are those of https://toonformat.dev.

Design constraint: loaded by tools that ask for it, and made of the structured content, so that both say the same.
"""

from __future__ import annotations

from typing import Any, Literal

from mcpace.server.calls.content import content_of
from mcpace.server.errors import RegistrationError
from mcpace.server.registration.output import Notation

OutputFormat = Literal["json", "toon", "auto"]


def notation(output_format: OutputFormat, tool: str) -> Notation:
    """What writes text in a format. Raises ``RegistrationError`` where its package isn't there."""
    try:
        from toon_format import dumps
    except ImportError as error:
        raise RegistrationError(
            f"output_format={output_format!r} of tool {tool!r} needs toon-format: pip install 'mcpace[toon]'"
        ) from error

    def toon(data: Any, value: Any) -> str:
        return dumps(data)

    def shorter(data: Any, value: Any) -> str | None:
        text = dumps(data)
        return text if len(text) < _length(value) else None

    return toon if output_format == "toon" else shorter


def _length(value: Any) -> int:
    """Of the text that a value is without a format."""
    return sum(len(getattr(block, "text", "")) for block in content_of(value))
