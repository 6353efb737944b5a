"""What a foreign server's own construction says of how it is served over HTTP."""

from __future__ import annotations

from typing import Any

from mcpace.server.adopt.kinds import Kind


def options_of(server: Any, kind: Kind) -> dict[str, Any]:
    """Keywords of ``_core.HttpOptions``."""
    return {}
