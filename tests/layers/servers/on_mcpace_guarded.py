"""On mcpace: the same tool among a hundred, each with a permission and a rate limit of its own."""

from collections.abc import Callable

from mcpace import AccessRequest, MCPServer

mcp = MCPServer("guarded")


def only(name: str) -> Callable[[AccessRequest], bool]:
    """A permission of one tool's own, which is Python's and looks at what is asked."""

    def may(request: AccessRequest) -> bool:
        return request.kind == "tool" and request.name == name

    return may


def double(n: int) -> dict[str, int]:
    """Twice the number."""
    return {"result": n * 2}


for name in ("double", *(f"double_{number}" for number in range(2, 101))):
    # Far beyond what anybody calls: what counting costs is to be seen, not what refusing does.
    mcp.add_tool(double, name=name, permissions=only(name), rate_limits="1000000/second")
