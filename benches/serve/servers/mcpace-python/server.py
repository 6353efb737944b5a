"""The tools of the Python rows, on mcpace. `sync` and `asynchronous` are served by `mcpace serve FILE.py:NAME`."""

import time

import catalogue

from mcpace import MCPServer

sync = MCPServer("echo")
asynchronous = MCPServer("echo")


# Text only, without a structured copy, as in all servers of the comparison.
@sync.tool(description="Says the text again", structured_output=False)
def echo(text: str) -> str:
    return text


@asynchronous.tool(name="echo", description="Says the text again", structured_output=False)
async def echo_later(text: str) -> str:
    return text


@sync.tool(description="Sleeps 50 ms", structured_output=False)
def sleep() -> str:
    time.sleep(0.05)
    return "slept"


@sync.tool(description="Keeps the interpreter busy for 200 µs", structured_output=False)
def burn() -> str:
    until = time.perf_counter_ns() + 200_000
    while time.perf_counter_ns() < until:
        pass
    return "burnt"


sync.tool(name="catalogue", description="10 KB of products")(catalogue.catalogue)


def listing() -> MCPServer:
    """A server of 200 tools."""
    server = MCPServer("echo")
    for number in range(200):
        server.tool(name=f"echo_{number}", description="Says the text again", structured_output=False)(echo)
    return server


if __name__ == "__main__":
    sync.run()
