"""The tools of all plain servers here. Annotations are evaluated: each SDK looks for a context class of its own."""

from typing import Any

print("a module may print at import")


def filled(mcp: Any, Context: Any) -> Any:
    """The server, with its tools."""

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

    return mcp
