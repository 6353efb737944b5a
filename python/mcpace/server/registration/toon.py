"""TOON as the text of a tool's data: shorter than JSON for lists of similar objects.

``output_format="toon"`` writes all data as TOON, ``"auto"`` only if that is shorter than JSON. Structured content stays
JSON. The format and its package are those of https://toonformat.dev.

Design constraint: loaded only by tools that use it. The text is made of the structured content, so that both agree.
"""

from __future__ import annotations

from typing import Any, Literal

from mcpace.server.calls.content import content_of
from mcpace.server.errors import RegistrationError
from mcpace.server.registration.output import Notation

OutputFormat = Literal["json", "toon", "auto"]


def notation(output_format: OutputFormat, tool: str) -> Notation:
    """The writer of a format. Raises ``RegistrationError`` if its package is missing."""
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
        return text if len(text) < _plain_length(value) else None

    return toon if output_format == "toon" else shorter


def _plain_length(value: Any) -> int:
    """The length of a value's text without a format."""
    return sum(len(getattr(block, "text", "")) for block in content_of(value))
