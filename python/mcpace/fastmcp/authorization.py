"""FastMCP's checks of who may use what (``auth=``), as permissions of the runtime.

A check is a function, or a coroutine function, of an :class:`AuthContext`. All of several must agree. As in FastMCP
they are not asked over stdio, where whoever started the server is its user; they are of everybody else, a client in
memory and a call within the process on somebody's behalf among them. Other than there a call that is refused is
answered with 403 and the scopes that would help, not as if there were no such tool.

Design constraint: made into permissions at registration; what they decide is asked where all permissions are.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mcpace.server.auth.guards import UNGUARDED, Denied, Guards
from mcpace.server.errors import RegistrationError
from mcpace.server.registration.signature import is_async

if TYPE_CHECKING:
    from mcpace.server.auth.guards import AccessRequest, Permission


@dataclass(frozen=True)
class Component:
    """A resource, a family of resources or a prompt, as a check sees it."""

    name: str
    tags: frozenset[str]
    meta: dict[str, Any] | None
    uri: str | None = None
    """A resource's. A family has ``uri_template``, and here what is read of it, where something is."""
    uri_template: str | None = None


@dataclass(frozen=True)
class AuthContext:
    """What a check is asked."""

    token: Any
    """The caller's token; ``None`` where there is none."""
    component: Any
    """What is to be used: it has ``name``, ``tags`` and ``meta``."""

    @property
    def tool(self) -> Any:
        """The component, where it is a tool."""
        return None if isinstance(self.component, Component) else self.component


AuthCheck = Callable[[AuthContext], bool | Awaitable[bool]]


class AuthorizationError(Denied):
    """Raise it in a check to say no in words of your own."""


class _Scopes:
    """The caller's token must have these, where the component has the tag, if one is named."""

    def __init__(self, scopes: Iterable[str], tag: str | None = None) -> None:
        self.scopes = frozenset(scopes)
        self.tag = tag

    def __call__(self, context: AuthContext) -> bool:
        return not self.missing(context)

    def missing(self, context: AuthContext) -> list[str]:
        """Those that the token lacks."""
        if self.tag is not None and self.tag not in context.component.tags:
            return []
        return sorted(self.scopes - set(getattr(context.token, "scopes", None) or ()))


def require_scopes(*scopes: str) -> AuthCheck:
    """The caller's token must have all these scopes."""
    return _Scopes(scopes)


def restrict_tag(tag: str, *, scopes: list[str]) -> AuthCheck:
    """What has this tag needs these scopes."""
    return _Scopes(scopes, tag)


def require_roles(*roles: str, extract: Callable[[dict[str, Any]], Iterable[str]]) -> AuthCheck:
    """The caller must have all these roles; ``extract`` finds them among the token's claims."""
    if not roles:
        raise ValueError("require_roles() needs at least one role")

    def check(context: AuthContext) -> bool:
        if context.token is None:
            return False
        try:
            found = extract(getattr(context.token, "claims", None) or {})
        except (KeyError, IndexError, TypeError):
            return False
        return set(roles) <= ({found} if isinstance(found, str) else set(found))

    return check


def guarded(auth: Any, component: Any, timeout: float | None = None) -> Guards:
    """The guards of a component. Raises ``RegistrationError`` where a check is none."""
    checks = [] if auth is None else list(auth) if isinstance(auth, list | tuple) else [auth]
    for check in checks:
        if not callable(check):
            raise RegistrationError(f"auth of {component.name!r}: {check!r} is no function of an AuthContext")
    if not checks and timeout is None:
        return UNGUARDED
    return Guards(tuple(_permission(check, component) for check in checks), timeout=timeout)


def _permission(check: AuthCheck, component: Any) -> Permission:
    def answered(agreed: Any, context: AuthContext) -> None:
        if not agreed:
            missing = check.missing(context) if isinstance(check, _Scopes) else []
            raise Denied(f"needs the scopes {' '.join(missing)}" if missing else "not permitted", scopes=missing)

    def ask(asked: AccessRequest) -> None:
        if asked.transport != "stdio":
            context = AuthContext(asked.principal, _read(component, asked))
            agreed = check(context)
            if inspect.isawaitable(agreed):
                raise TypeError(f"the check of {component.name!r} is awaitable: make it a coroutine function")
            answered(agreed, context)

    async def ask_later(asked: AccessRequest) -> None:
        if asked.transport != "stdio":
            context = AuthContext(asked.principal, _read(component, asked))
            agreed = check(context)
            answered(await agreed if inspect.isawaitable(agreed) else agreed, context)

    return ask_later if is_async(check) else ask


def _read(component: Any, asked: AccessRequest) -> Any:
    """The component; one of a family with what is read of it."""
    return component if asked.uri is None else replace(component, uri=asked.uri)
