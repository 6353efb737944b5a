"""Conversion of returned values to content blocks, as the official SDK does it.

A string becomes a text block, a block stays unchanged, a picture or sound becomes a block, a list is converted item by
item, and any other value becomes a text block of its JSON, indented by two.

Design constraint: objects of the official SDK are treated as mcpace's are, without importing the SDK.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, get_args, get_origin

from pydantic_core import to_json
from typing_inspection.introspection import is_union_origin

from mcpace.server.calls.media import Audio, Image
from mcpace.types import ContentBlock, TextContent, content_block, is_content_type, is_kind


def content_of(value: Any) -> list[ContentBlock]:
    """The blocks of a returned value."""
    blocks: list[ContentBlock] = []
    _append_blocks(value, blocks)
    return blocks


def text_of(value: Any) -> str:
    """The text of a value that is no string: its JSON, for a model to read."""
    return to_json(value, fallback=str, indent=2).decode()


def content_json(value: Any) -> bytes:
    """The blocks of a returned value, as a JSON array."""
    if isinstance(value, str):
        return text_json(value)
    if value is None:
        return b"[]"
    kind = type(value)
    if isinstance(value, list | tuple) or is_content_type(kind) or _is_media(kind):
        return to_json([_block_json(block) for block in content_of(value)])
    return text_json(text_of(value))


def text_json(text: str) -> bytes:
    """One block of text, as a JSON array of blocks."""
    return b'[{"type":"text","text":' + to_json(text) + b"}]"


def failure_json(text: str) -> bytes:
    """A tool's failure as a whole result's JSON."""
    return b'{"content":' + text_json(encodable(text)) + b',"isError":true}'


def encodable(text: str) -> str:
    """The text without lone surrogates, which UTF-8 can't encode."""
    return text.encode(errors="replace").decode()


def returns_content(annotation: Any) -> bool:
    """Whether a return annotation declares content blocks, pictures or sounds, bare or in a list, tuple or union."""
    origin = get_origin(annotation)
    if origin is None:
        return is_content_type(annotation) or _is_media(annotation)
    if origin is Annotated:
        return returns_content(get_args(annotation)[0])
    if is_union_origin(origin) or origin in (list, tuple, Sequence):
        return any(returns_content(arm) for arm in get_args(annotation))
    return False


def media_block(value: Any) -> ContentBlock | None:
    """The block of a picture or sound; ``None`` for any other value."""
    if is_kind(type(value), Image, "Image"):
        return content_block(value.to_image_content())
    if is_kind(type(value), Audio, "Audio"):
        return content_block(value.to_audio_content())
    return None


def _append_blocks(value: Any, blocks: list[ContentBlock]) -> None:
    if value is None:
        return
    if isinstance(value, str):
        blocks.append(TextContent(text=value))
    elif is_content_type(type(value)):
        blocks.append(content_block(value))
    elif (block := media_block(value)) is not None:
        blocks.append(block)
    elif isinstance(value, list | tuple):
        for item in value:
            _append_blocks(item, blocks)
    else:
        blocks.append(TextContent(text=text_of(value)))


def _block_json(block: ContentBlock) -> dict[str, Any]:
    return block.model_dump(mode="json", by_alias=True, exclude_none=True)


def _is_media(kind: Any) -> bool:
    return is_kind(kind, (Image, Audio), "Image", "Audio")
