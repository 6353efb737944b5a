"""A server that asks for a token."""

from fastmcp import FastMCP
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier
from fastmcp.server.dependencies import get_access_token
from starlette.requests import Request
from starlette.responses import JSONResponse

mcp = FastMCP(
    "Secured",
    auth=StaticTokenVerifier(
        tokens={
            "good": {"client_id": "caller", "scopes": ["user"]},
            "narrow": {"client_id": "caller", "scopes": []},
            "old": {"client_id": "caller", "scopes": ["user"], "expires_at": 1},
        },
        required_scopes=["user"],
    ),
)


@mcp.tool
def echo(text: str) -> str:
    return text


@mcp.tool
async def who() -> str:
    token = get_access_token()
    return f"{token.client_id} {token.scopes}" if token else "nobody"


@mcp.custom_route("/health", methods=["GET"])
async def health(request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})
