"""The official Python SDK as a server program (adapters/README.md). The features of a release are detected, not looked
up by version."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import program
import tools
from shop_values import NoUser

PACKAGE = "mcp"


def main() -> None:
    chosen = program.options()
    if chosen.mode not in ("json", "sse"):
        program.unsupported(f"this SDK has no mode {chosen.mode}")
    wanted = {"json_response": chosen.mode == "json", "stateless_http": chosen.state == "stateless"}
    server, app = made(wanted, chosen.host)
    # Results are text only, without the structured copy that newer releases add.
    plain = {"structured_output": False} if "structured_output" in parameters(server.add_tool) else {}
    for tool in tools.registered():
        server.add_tool(telling(tool), name=tool.__name__, **plain)
    application = app()
    # The first releases mount the endpoint and redirect requests without the trailing slash.
    mounted = any(type(route).__name__ == "Mount" and route.path == "/mcp" for route in application.routes)
    program.serve_asgi(chosen, PACKAGE, application, path="/mcp/" if mounted else "/mcp")


def made(wanted: dict[str, Any], host: str) -> tuple[Any, Callable[[], Any]]:
    """A server, and a function that returns its ASGI application. The HTTP options are arguments of the function in
    2.x, and of the constructor of the server in 1.x."""
    try:
        from mcp.server import MCPServer
    except ImportError:
        from mcp.server.fastmcp import FastMCP

        missing = set(wanted) - parameters(FastMCP)
        if missing and not takes_settings(FastMCP):
            program.unsupported(f"this release has no {', '.join(sorted(missing))}: streamable HTTP begins with 1.8")
        server = FastMCP("shop", host=host, log_level="ERROR", **wanted)
        return server, server.streamable_http_app
    server = MCPServer("shop", log_level="ERROR")
    return server, functools.partial(server.streamable_http_app, host=host, **wanted)


def telling(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The tool, which returns its error as a result, because the SDK would prefix the message of an exception."""
    if tool.__name__ != "get_user_cart":
        return tool

    @functools.wraps(tool)
    async def told(user_id: int) -> Any:
        try:
            return await tool(user_id)
        except NoUser as problem:
            if not results_pass():
                raise
            return failure(str(problem))

    return told


def failure(text: str) -> Any:
    try:
        from mcp.types import CallToolResult, TextContent
    except ImportError:
        from mcp_types import CallToolResult, TextContent
    fields = CallToolResult.model_fields
    failed = {"is_error" if "is_error" in fields else "isError": True}
    return CallToolResult(content=[TextContent(type="text", text=text)], **failed)


def results_pass() -> bool:
    """Whether a tool may return a complete result. Earlier releases would write it as JSON, so tools raise there."""
    try:
        from mcp.server.fastmcp.utilities import func_metadata
    except ImportError:  # 2.x, where it may
        return True
    return hasattr(func_metadata, "CallToolResult")


def parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters)


def takes_settings(function: Callable[..., Any]) -> bool:
    """Whether a server class takes HTTP options as keywords, as in earlier releases, which accept any keyword."""
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    return inspect.Parameter.VAR_KEYWORD in kinds and hasattr(function, "streamable_http_app")


if __name__ == "__main__":
    main()
