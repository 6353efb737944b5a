"""From what a service returned to a result: by its output serializer, then as JSON, and as the text beside it.

Design constraint: one serialisation. The structured content is written once; the text is made of it by the compiled
part, unless it is TOON. What is too long becomes an error, it is never cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from pydantic_core import from_json, to_json
from rest_framework.utils.encoders import JSONEncoder

from mcpace.django.choices import OutputFormat
from mcpace.django.inputs import Kept
from mcpace.django.request import Call
from mcpace.server.errors import ToolError
from mcpace.server.toon import notation

Written = tuple[bytes, bytes | Literal[True]]
"""Structured content as JSON, and the text: ``True`` where it is that JSON's."""
Write = Callable[[Any], Written]
"""From a payload."""


class Renderer:
    """Makes plain values of what a service or selector returned."""

    def __init__(self, serializer: type[Any] | None) -> None:
        self._class = serializer
        self._kept = Kept(serializer, reading=False) if serializer is not None else None
        self._kept_lists = Kept(serializer, reading=False, many=True) if serializer is not None else None

    def one(self, value: Any, call: Call) -> Any:
        """Of one value; ``None`` stays ``None``."""
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

    def many(self, values: Iterable[Any], call: Call) -> list[Any]:
        """Of each."""
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
    """A payload as JSON: what REST framework's encoder knows is written."""
    return to_json(payload, fallback=_fallback, inf_nan_mode="null")


def structured(payload: Any) -> Any:
    """What stands as structured content, which is an object: nothing is ``{}``, anything else is a ``result``."""
    if type(payload) is dict or isinstance(payload, Mapping):
        return payload
    return {} if payload is None else {"result": payload}


class Writer:
    """Writes payloads, within a bound."""

    def __init__(self, form: OutputFormat, max_bytes: int | None, name: str) -> None:
        self._text = (
            notation("toon" if form is OutputFormat.TOON else "auto", name) if form is not OutputFormat.JSON else None
        )
        self._max_bytes = max_bytes

    def write(self, payload: Any) -> Written:
        """Raises ``ToolError`` where it is over the bound."""
        content = json_of(structured(payload))
        text = self._noted(content)
        if self._max_bytes is not None:
            length = len(content) * 2 if text is True else len(content) + len(text)
            if length > self._max_bytes:
                raise ToolError(
                    f"the result is too long: {length} bytes, of {self._max_bytes} that are allowed. "
                    "Ask for less: a filter, a smaller page, fewer fields"
                )
        return content, text

    def _noted(self, content: bytes) -> bytes | Literal[True]:
        if self._text is None:
            return True
        data = from_json(content)
        text = self._text(data, data)
        return True if text is None else text.encode()
