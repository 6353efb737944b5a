"""Calls a tool five times with the SDK's OAuth client, whose storage holds a token."""

import asyncio
import os

from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

REDIRECT = "http://127.0.0.1:3030/callback"


class Storage:
    async def get_tokens(self) -> OAuthToken:
        return OAuthToken(access_token="secret")

    async def set_tokens(self, tokens: OAuthToken) -> None:
        pass

    async def get_client_info(self) -> OAuthClientInformationFull:
        return OAuthClientInformationFull(client_id="host", redirect_uris=[REDIRECT])

    async def set_client_info(self, info: OAuthClientInformationFull) -> None:
        pass


async def refuse(*_: object) -> None:
    raise RuntimeError("the token was refused")


async def main() -> None:
    url = os.environ["MCP_URL"]
    metadata = OAuthClientMetadata(client_name="host", redirect_uris=[REDIRECT])
    auth = OAuthClientProvider(url, metadata, Storage(), refuse, refuse)
    async with streamablehttp_client(url, auth=auth) as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        for number in range(5):
            await session.call_tool("forecast", {"city": f"city {number}"})


asyncio.run(main())
