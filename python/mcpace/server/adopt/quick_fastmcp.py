"""Tools of FastMCP 3 and 4 that the runtime can call itself; the design constraint is :mod:`.quick_official`'s."""

from __future__ import annotations

from typing import Any

from mcpace.server.adopt.quick_official import Unfit


def tools_of(server: Any) -> dict[str, Any]:
    """The server's own tools by name, where a name stands for one only."""
    return {}


def counts(server: Any) -> tuple[int, int, int]:
    """Resources, templates, prompts of its own."""
    return (0, 0, 0)


def handler(tool: Any, server: Any) -> Any:
    """The tool as a ``_core.Handler``. Raises :class:`Unfit`."""
    raise Unfit("not yet")
