"""A server that asks for a token."""

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.fastmcp import FastMCP
from pydantic import AnyHttpUrl
from starlette.requests import Request
from starlette.responses import JSONResponse


class Verifier(TokenVerifier):
    async def verify_token(self, token: str) -> AccessToken | None:
        if token == "good":
            return AccessToken(token=token, client_id="caller", scopes=["user"])
        if token == "narrow":
            return AccessToken(token=token, client_id="caller", scopes=[])
        if token == "old":
            return AccessToken(token=token, client_id="caller", scopes=["user"], expires_at=1)
        return None


mcp = FastMCP(
    "Secured",
    token_verifier=Verifier(),
    auth=AuthSettings(
        issuer_url=AnyHttpUrl("https://auth.example.com"),
        resource_server_url=AnyHttpUrl("http://127.0.0.1:8000/mcp"),
        required_scopes=["user"],
    ),
)


@mcp.tool()
def echo(text: str) -> str:
    return text


@mcp.tool()
async def who() -> str:
    token = get_access_token()
    return f"{token.client_id} {token.scopes}" if token else "nobody"


@mcp.custom_route("/health", methods=["GET"])
async def health(request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})
