"""Pictures and sounds that a tool or prompt returns, from a file or from bytes.

Design constraint: a file is read when the result is made, not before; nothing is decoded.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import ClassVar

from mcpace.types import AudioContent, ImageContent


class _Media:
    _family: ClassVar[str]
    _default: ClassVar[str]
    _suffixes: ClassVar[dict[str, str]]

    def __init__(self, path: str | Path | None = None, data: bytes | None = None, format: str | None = None) -> None:
        name = type(self).__name__
        if not path and data is None:
            raise ValueError(f"{name}: either path or data must be given")
        if path and data is not None:
            raise ValueError(f"{name}: only one of path and data can be given")
        self.path = Path(path) if path else None
        self.data = data
        self.mime_type = self._mime_type(format)

    def _mime_type(self, format: str | None) -> str:
        if format:
            return f"{self._family}/{format.lower()}"
        if self.path:
            return self._suffixes.get(self.path.suffix.lower(), "application/octet-stream")
        return self._default

    def _base64(self) -> str:
        data = self.path.read_bytes() if self.path else self.data or b""
        return base64.b64encode(data).decode()


class Image(_Media):
    """A picture to return from a tool: ``Image(path="plot.png")``, or ``Image(data=png_bytes, format="png")``."""

    _family = "image"
    _default = "image/png"
    _suffixes: ClassVar[dict[str, str]] = {
        ".png": "image/png",
        ".jpg": "image/jpeg",
        ".jpeg": "image/jpeg",
        ".gif": "image/gif",
        ".webp": "image/webp",
    }

    def to_image_content(self) -> ImageContent:
        """The content block. Raises ``OSError`` where the file can't be read."""
        return ImageContent(data=self._base64(), mime_type=self.mime_type)


class Audio(_Media):
    """A sound to return from a tool: ``Audio(path="word.mp3")``, or ``Audio(data=wav_bytes, format="wav")``."""

    _family = "audio"
    _default = "audio/wav"
    _suffixes: ClassVar[dict[str, str]] = {
        ".wav": "audio/wav",
        ".mp3": "audio/mpeg",
        ".ogg": "audio/ogg",
        ".flac": "audio/flac",
        ".aac": "audio/aac",
        ".m4a": "audio/mp4",
    }

    def to_audio_content(self) -> AudioContent:
        """The content block. Raises ``OSError`` where the file can't be read."""
        return AudioContent(data=self._base64(), mime_type=self.mime_type)
