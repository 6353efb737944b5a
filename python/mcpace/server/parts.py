"""What the sides of a server have in common: the members that registering, answering and hosting are about.

Design constraint: declared here, made by :class:`mcpace.server.app.MCPServer`; nothing runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from typing_extensions import TypeVar as DefaultTypeVar

if TYPE_CHECKING:
    from mcpace.server.app import MCPServer
    from mcpace.server.auth import AuthSettings
    from mcpace.server.inside import Inside
    from mcpace.server.registry import Registry
    from mcpace.server.security import ResourceSecurity

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
LifespanT = DefaultTypeVar("LifespanT", default=Any)
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a server was made with."""

    debug: bool
    log_level: LogLevel
    warn_on_duplicate_resources: bool
    warn_on_duplicate_tools: bool
    warn_on_duplicate_prompts: bool
    dependencies: list[str]
    lifespan: Any
    auth: AuthSettings | None


class Parts(Generic[LifespanT]):
    """See the module."""

    settings: Settings
    registry: Registry
    tool_timeout: float | None
    _inside: Inside
    _resource_security: ResourceSecurity | None
    _bus: Any
    _routes: list[Any]
    _application: Any
    _lifespan_context: Any

    @property
    def _server(self) -> MCPServer[LifespanT]:
        """All sides of it."""
        return cast("MCPServer[LifespanT]", self)
