"""On FastMCP."""

from fastmcp import Context, FastMCP

print("a module may print at import")

mcp = FastMCP("double")


@mcp.tool()
def double(n: int) -> dict[str, int]:
    """Twice the number."""
    return {"result": n * 2}


@mcp.tool()
async def double_async(n: int) -> dict[str, int]:
    """Twice the number, from a coroutine."""
    return {"result": n * 2}


@mcp.tool()
def fails(n: int) -> int:
    """Raises."""
    raise ValueError(f"there is no invoice {n}")


@mcp.tool()
async def with_context(n: int, ctx: Context) -> int:
    """Takes what only a request has."""
    return n
