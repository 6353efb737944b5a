"""A server that tells what it sees of the HTTP request that a call came in."""

from mcp.server.fastmcp import Context, FastMCP
from starlette.requests import Request
from starlette.responses import JSONResponse

mcp = FastMCP("Requested")


def seen(request: Request) -> dict[str, object]:
    assert request.client is not None
    server, _ = request.scope["server"]
    return {
        "client": request.client.host,
        "server": server,
        "url": str(request.url),
        "query": dict(request.query_params),
    }


@mcp.tool()
def caller(ctx: Context) -> dict[str, object]:
    """Where the call comes from"""
    return seen(ctx.request_context.request)


@mcp.custom_route("/caller", methods=["GET"])
async def other(request: Request) -> JSONResponse:
    return JSONResponse(seen(request))
