"""Turns the return value of a service into a result: by its output serializer, then as JSON, and as text.

Design constraint: one serialisation. The structured content is written once; the compiled part makes the text of it,
unless the text is TOON. A result that is too long becomes an error and is never truncated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from pydantic_core import from_json, to_json
from rest_framework.utils.encoders import JSONEncoder

from mcpace.django.argument_validation import Kept
from mcpace.django.choices import OutputFormat
from mcpace.django.request import Call
from mcpace.server.errors import ToolError
from mcpace.server.registration.toon import notation

Written = tuple[bytes, bytes | Literal[True]]
"""Structured content as JSON, and the text; ``True`` where the text is that JSON."""
Write = Callable[[Any], Written]
"""Writes a payload."""


class Renderer:
    """Converts the return values of a service or selector into plain values."""

    def __init__(self, serializer: type[Any] | None) -> None:
        self._class = serializer
        self._kept = Kept(serializer, reading=False) if serializer is not None else None
        self._kept_lists = Kept(serializer, reading=False, many=True) if serializer is not None else None

    def render_one(self, value: Any, call: Call) -> Any:
        """Plain value of one object; ``None`` stays ``None``."""
        if self._class is None or self._kept is None or value is None:
            return value
        if not self._kept.is_reused:
            return self._class(value, context=call.context()).data
        lent = self._kept.take(call.context())
        try:
            lent.serializer.instance = value
            return lent.serializer.to_representation(value)
        finally:
            self._kept.give_back(lent)

    def render_many(self, values: Iterable[Any], call: Call) -> list[Any]:
        """Plain values of all objects."""
        if self._class is None or self._kept_lists is None:
            return list(values)
        if not self._kept_lists.is_reused:
            return list(self._class(values, many=True, context=call.context()).data)
        lent = self._kept_lists.take(call.context())
        try:
            lent.serializer.instance = values
            return list(lent.serializer.to_representation(values))
        finally:
            self._kept_lists.give_back(lent)


_fallback = JSONEncoder().default


def json_of(payload: Any) -> bytes:
    """A payload as JSON, including the types that REST framework's encoder supports."""
    return to_json(payload, fallback=_fallback, inf_nan_mode="null")


def structured_content(payload: Any) -> Any:
    """A payload as structured content, which must be an object: ``None`` becomes ``{}``, and a payload that isn't a
    mapping becomes the value of ``result``."""
    if type(payload) is dict or isinstance(payload, Mapping):
        return payload
    return {} if payload is None else {"result": payload}


class Writer:
    """Writes payloads up to a maximum size."""

    def __init__(self, form: OutputFormat, max_bytes: int | None, name: str) -> None:
        self._text = (
            notation("toon" if form is OutputFormat.TOON else "auto", name) if form is not OutputFormat.JSON else None
        )
        self._max_bytes = max_bytes

    def write(self, payload: Any) -> Written:
        """Structured content and text of a payload. Raises ``ToolError`` where they exceed the maximum size."""
        content = json_of(structured_content(payload))
        text = self._alternate_text(content)
        if self._max_bytes is not None:
            length = len(content) * 2 if text is True else len(content) + len(text)
            if length > self._max_bytes:
                raise ToolError(
                    f"the result is too long: {length} bytes, of {self._max_bytes} that are allowed. "
                    "Ask for less: a filter, a smaller page, fewer fields"
                )
        return content, text

    def _alternate_text(self, content: bytes) -> bytes | Literal[True]:
        if self._text is None:
            return True
        data = from_json(content)
        text = self._text(data, data)
        return True if text is None else text.encode()
