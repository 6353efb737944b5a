"""Classes of FastMCP that mcpace lacks: instantiating one raises an error that names the alternative."""

from __future__ import annotations

from typing import Any

from mcpace.server.errors import UnsupportedOption

_ADOPT = "make the server with FastMCP itself, and serve it as it is: mcpace serve FILE.py:OBJECT"


class MultiAuth:
    """Tokens of several issuers. Raises ``UnsupportedOption``."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise UnsupportedOption(
            "MultiAuth(…): give auth= a class of your own whose verify_token() asks each verifier in turn; or " + _ADOPT
        )


class PromptsAsTools:
    """Tools that list and render prompts. Raises ``UnsupportedOption``."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise UnsupportedOption(
            "PromptsAsTools(…): register tools that call mcp.list_prompts() and mcp.render_prompt(); or " + _ADOPT
        )


class ResourcesAsTools:
    """Tools that list and read resources. Raises ``UnsupportedOption``."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise UnsupportedOption(
            "ResourcesAsTools(…): register tools that call mcp.list_resources() and mcp.read_resource(); or " + _ADOPT
        )
