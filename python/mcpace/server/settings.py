"""The settings of a server, and the types that its methods share.

Design constraint: plain declarations; nothing runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from typing_extensions import TypeVar as DefaultTypeVar

if TYPE_CHECKING:
    from mcpace.server.auth.bearer_tokens import AuthSettings

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
LifespanT = DefaultTypeVar("LifespanT", default=Any)
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class HttpKeywords(TypedDict, total=False):
    """Keywords for serving over HTTP, which mcp 1.x has on the constructor and 2.x has on ``run()``."""

    host: str
    port: int
    mount_path: str
    sse_path: str
    message_path: str
    streamable_http_path: str
    json_response: bool
    stateless_http: bool
    max_request_body_size: int | None
    retry_interval: int | None
    event_store: Any
    transport_security: Any


@dataclass(slots=True)
class Settings:
    """The settings of a server. They may be changed until the server is run."""

    debug: bool
    log_level: LogLevel
    warn_on_duplicate_resources: bool
    warn_on_duplicate_tools: bool
    warn_on_duplicate_prompts: bool
    dependencies: list[str]
    lifespan: Any
    auth: AuthSettings | None
    host: str = "127.0.0.1"
    port: int = 8000
    mount_path: str = "/"
    sse_path: str = "/sse"
    message_path: str = "/messages/"
    streamable_http_path: str = "/mcp"
    json_response: bool = False
    stateless_http: bool = False
    max_request_body_size: int | None = None
    retry_interval: int | None = None
    event_store: Any = None
    transport_security: Any = None
