"""Converts a function's return value into content blocks and structured content, as FastMCP does.

Text becomes a text block, a content block stays unchanged, an image, audio or file becomes a block of its kind, and any
other value becomes one text block of its JSON. Objects of FastMCP's and the official SDK's types are recognised without
importing those packages.
"""

from __future__ import annotations

import base64
import inspect
import mimetypes
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import PydanticSchemaGenerationError, TypeAdapter

from mcpace.server.calls.content import media_block
from mcpace.server.calls.media import Audio, Image
from mcpace.types import (
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    TextContent,
    TextResourceContents,
    content_block,
    is_content_type,
    is_kind,
)

ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)
"""Serializer of values of any type."""
_TEXT_FORMATS = {
    "plain": "text/plain",
    "txt": "text/plain",
    "text": "text/plain",
    "csv": "text/csv",
    "html": "text/html",
    "htm": "text/html",
    "md": "text/markdown",
    "markdown": "text/markdown",
}


class File:
    """A file to return from a tool: ``File(path="report.pdf")``, or ``File(data=text_bytes, format="csv")``."""

    def __init__(
        self,
        path: str | Path | None = None,
        data: bytes | None = None,
        format: str | None = None,
        name: str | None = None,
        annotations: Any = None,
    ) -> None:
        if (path is None) == (data is None):
            raise ValueError("File takes either path or data")
        self.path = Path(path).expanduser() if path is not None else None
        self.data = data
        self.annotations = annotations
        self._format = format.lower() if format else None
        self._name = name

    @property
    def mime_type(self) -> str:
        """The media type, according to the format or the file's suffix."""
        if self._format:
            return _TEXT_FORMATS.get(self._format, f"application/{self._format}")
        guessed = mimetypes.guess_type(self.path)[0] if self.path else None
        return guessed or "application/octet-stream"

    def to_resource_content(self, mime_type: str | None = None, annotations: Any = None) -> EmbeddedResource:
        """The content block. Raises ``OSError`` where the file can't be read."""
        kind = mime_type or self.mime_type
        if self.path is not None:
            raw, uri = self.path.read_bytes(), self.path.resolve().as_uri()
        else:
            raw = self.data or b""
            suffix = "." + (self._format or kind.split("/")[1])
            name = self._name or "resource"
            uri = f"file:///{quote(name if Path(name).suffix else name + suffix)}"
        resource: TextResourceContents | BlobResourceContents
        if kind.startswith("text/"):
            resource = TextResourceContents(uri=uri, text=_decode_text(raw), mime_type=kind)
        else:
            resource = BlobResourceContents(uri=uri, blob=base64.b64encode(raw).decode(), mime_type=kind)
        return EmbeddedResource(resource=resource, annotations=annotations or self.annotations)


def _decode_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def is_media(kind: Any) -> bool:
    """Whether a class is that of an image, of audio or of a file."""
    return is_kind(kind, (Image, Audio, File), "Image", "Audio", "File")


def is_block(value: Any) -> bool:
    """Whether a value is a content block, or a media object that becomes one."""
    return is_content_type(type(value)) or is_media(type(value))


def has_blocks(value: Any) -> bool:
    """Whether a value is content, or a list that contains some."""
    return is_block(value) or (isinstance(value, list | tuple) and any(is_block(one) for one in value))


def blocks_of(value: Any) -> list[ContentBlock]:
    """A value as content blocks."""
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        return [_block(value)]
    if not value or any(is_block(one) for one in value):
        return [_block(one) for one in value]
    return [TextContent(text=text_of(value))]


def text_of(value: Any) -> str:
    """The JSON of a value."""
    return ANYTHING.dump_json(value, fallback=str).decode()


def adapter_of(annotation: Any) -> TypeAdapter[Any]:
    """The serializer for values of an annotation, built once at registration."""
    if annotation in (inspect.Signature.empty, None, Any, ...) or isinstance(annotation, str):
        return ANYTHING
    try:
        return TypeAdapter(annotation)
    except PydanticSchemaGenerationError:
        return ANYTHING


def jsonable(value: Any, adapter: TypeAdapter[Any] = ANYTHING) -> Any:
    """A value converted to JSON types. Raises ``PydanticSerializationError``."""
    return adapter.serializer.to_python(value, mode="json", warnings=False)


def _block(value: Any) -> ContentBlock:
    if is_content_type(type(value)):
        return content_block(value)
    if is_kind(type(value), File, "File"):
        return content_block(value.to_resource_content())
    media = media_block(value)
    if media is not None:
        return media
    if isinstance(value, str):
        return TextContent(text=value)
    if isinstance(value, bytes):
        try:
            return TextContent(text=value.decode())
        except UnicodeDecodeError:
            return TextContent(text=base64.b64encode(value).decode("ascii"))
    return TextContent(text=text_of(value))
