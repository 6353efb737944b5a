"""mcpace's Python face as a server program (adapters/README.md), run as its users run it.

Only the public API of mcpace is used, because it is tested here like any other SDK. The one exception is the flag that
marks a debug build.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))
import program
import tools
from shop_values import NoUser

PACKAGE = "mcpace"
SERVING = re.compile(r" serving .* at (http://\S+)")
MODES = {
    "auto": {},
    "json": {"json_response": True},
    "sse": {"response": "sse"},
}


def main() -> None:
    chosen = program.options()
    if chosen.mode not in MODES:
        program.unsupported(f"mcpace has no mode {chosen.mode}: it is one of {', '.join(MODES)}")
    if chosen.site:
        # The folder is searched last, so that mcpace finds the packages that it was installed with.
        sys.path.append(chosen.site)
    from mcpace import MCPServer, _core

    notes = ("mcpace's compiled part is a debug build: its figures mean nothing",) if _core.DEBUG else ()
    server = MCPServer("shop", log_level="ERROR")
    for tool in tools.registered():
        # Results are text only, without a structured copy.
        server.add_tool(telling(tool), name=tool.__name__, structured_output=False)
    # mcpace prints its address on stderr, in the first line.
    sys.stderr = overheard = Overheard(sys.stderr, lambda url: program.say_ready(chosen, PACKAGE, url, notes))
    # mcpace handles the signal only once it listens.
    program.at_stdin_s_end(lambda: os.kill(os.getpid(), signal.SIGTERM) if overheard.told else os._exit(0))
    options = {"host": chosen.host, "port": chosen.port, "stateless_http": chosen.state == "stateless"}
    try:
        server.run("streamable-http", graceful_timeout_s=float(program.GRACE_S), **options, **MODES[chosen.mode])
    except Exception as problem:  # the message says what to do, and a traceback would not help
        sys.exit(str(problem))


class Overheard:
    """Wraps a stream and extracts the server's address from the text that is written to it."""

    def __init__(self, stream: Any, tell: Callable[[str], None]) -> None:
        self._stream = stream
        self._tell = tell
        self.told = False

    def write(self, text: str) -> int:
        found = SERVING.search(text)
        if found and not self.told:
            self.told = True
            self._tell(found[1])
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def telling(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The tool, which returns its error as a result, because the runtime would prefix the message of an exception."""
    if tool.__name__ != "get_user_cart":
        return tool
    from mcpace.types import CallToolResult, TextContent

    @functools.wraps(tool)
    async def told(user_id: int) -> Any:
        try:
            return await tool(user_id)
        except NoUser as problem:
            return CallToolResult(content=[TextContent(text=str(problem))], is_error=True)

    return told


if __name__ == "__main__":
    main()
