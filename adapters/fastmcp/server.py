"""FastMCP as a server program (adapters/README.md). The features of a release are detected, not looked up by
version."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import program
import tools
from shop_values import NoUser

PACKAGE = "fastmcp"


def main() -> None:
    chosen = program.options()
    if chosen.mode not in ("json", "sse"):
        program.unsupported(f"this SDK has no mode {chosen.mode}")
    from fastmcp import FastMCP
    from fastmcp.exceptions import ToolError
    from fastmcp.tools import Tool

    server = FastMCP("shop")
    for tool in tools.registered():
        # Results are text only, without a structured copy.
        server.add_tool(Tool.from_function(telling(tool, ToolError), name=tool.__name__, output_schema=None))
    app = server.http_app(json_response=chosen.mode == "json", stateless_http=chosen.state == "stateless")
    program.serve_asgi(chosen, PACKAGE, app)


def telling(tool: Callable[..., Any], tool_error: type[Exception]) -> Callable[..., Any]:
    """The tool, which raises FastMCP's error instead of its own."""
    if tool.__name__ != "get_user_cart":
        return tool

    @functools.wraps(tool)
    async def told(user_id: int) -> str:
        try:
            return await tool(user_id)
        except NoUser as problem:
            raise tool_error(str(problem)) from None

    return told


if __name__ == "__main__":
    main()
