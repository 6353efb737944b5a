"""The kinds of servers that can be adopted, recognized by the module of their class.

Design constraint: imports nothing. A class is recognized by its module and name, a subclass by its bases.
"""

from __future__ import annotations

from enum import Enum
from typing import Any


class Kind(Enum):
    """The servers that can be adopted."""

    MCPSERVER = "MCPServer of mcp 2.x"
    FASTMCP_1 = "FastMCP of mcp 1.x"
    FASTMCP = "FastMCP"
    LOWLEVEL = "low-level Server of mcp"


_CLASSES = {
    ("mcp.server.mcpserver.server", "MCPServer"): Kind.MCPSERVER,
    ("mcp.server.fastmcp.server", "FastMCP"): Kind.FASTMCP_1,
    ("fastmcp.server.server", "FastMCP"): Kind.FASTMCP,
    ("mcp.server.lowlevel.server", "Server"): Kind.LOWLEVEL,
}


def kind_of(candidate: object) -> Kind | None:
    """The kind of a server object; ``None`` for any other object."""
    if issubclass(type(candidate), type):
        return None
    for base in type(candidate).__mro__:
        kind = _CLASSES.get((base.__module__, base.__name__))
        if kind is not None:
            return kind
    return None


def low_level(server: Any, kind: Kind) -> Any:
    """The low-level server within a server object."""
    match kind:
        case Kind.MCPSERVER:
            return server._lowlevel_server
        case Kind.FASTMCP_1 | Kind.FASTMCP:
            return server._mcp_server
        case Kind.LOWLEVEL:
            return server


def is_2(low: Any) -> bool:
    """Whether a low-level server is of mcp 2.x, whose handlers are found by method."""
    return hasattr(low, "get_request_handler")
