"""A client for the official conformance suite with the Python face.

See crates/client/examples/conformance.rs, which does the same.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from mcpace.client import Client, ClientError, MCPError, OAuth
from mcpace.types import ElicitResult

METADATA = "https://conformance-test.local/client-metadata.json"
# Limit of a client that hangs: it must end before the suite's own limit.
LIMIT_S = 90


async def main(url: str) -> None:
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    modern = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION") == "2026-07-28"
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    client = Client(
        url,
        mode="auto" if modern else "legacy",
        auth=oauth(scenario, context) if scenario.startswith("auth/") else None,
        # A client without callbacks holds no standalone stream open: the suite puts foreign answers on it.
        elicitation_callback=None if scenario == "sse-retry" else accept,
        read_timeout_seconds=LIMIT_S,
        connect_timeout_seconds=LIMIT_S,
    )
    async with client:
        tools = (await client.list_tools()).tools
        calls = [(call["name"], call["arguments"]) for call in context.get("toolCalls", [])]
        for tool in [] if calls else tools:
            arguments = filled(tool.input_schema)
            if tool.name == "json_schema_echo":
                # The other tool's schema, as it came.
                arguments["schema"] = next(other.input_schema for other in tools if other.name != tool.name)
            calls.append((tool.name, arguments))
        for name, arguments in calls:
            try:
                await client.call_tool(name, arguments)
            except (ClientError, MCPError) as refused:
                # For the suite to judge.
                print(refused, file=sys.stderr)


def oauth(scenario: str, context: dict[str, Any]) -> OAuth:
    return OAuth(
        client_id=context.get("client_id"),
        client_secret=context.get("client_secret"),
        client_metadata_url=METADATA,
        private_key=context.get("private_key_pem"),
        client_credentials="client-credentials" in scenario,
        assertion=context.get("valid_jwt"),
        idp_id_token=context.get("idp_id_token"),
        idp_token_endpoint=context.get("idp_token_endpoint"),
        idp_client_id=context.get("idp_client_id"),
        follow=True,
    )


async def accept(context: Any, params: Any) -> ElicitResult:
    """Accepts a form as it is: with its defaults."""
    return ElicitResult(action="accept", content=filled(params.requested_schema))


def filled(schema: dict[str, Any]) -> dict[str, Any]:
    """A value for each property that has a default or is needed."""
    values: dict[str, Any] = {}
    for name, property_ in schema.get("properties", {}).items():
        if "default" in property_:
            values[name] = property_["default"]
        elif name in schema.get("required", []):
            values[name] = {"number": 1, "integer": 1, "boolean": True}.get(property_.get("type"), "text")
    return values


asyncio.run(main(sys.argv[-1]))
