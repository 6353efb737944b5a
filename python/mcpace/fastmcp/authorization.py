"""FastMCP's authorization checks (``auth=``), as permissions of the runtime.

A check is a function, or a coroutine function, of an :class:`AuthContext`. All checks of a component must agree. As in
FastMCP, checks are skipped over stdio, where the user is the one who started the server. They apply to every other
caller, including clients in memory and calls within the process with a principal. Unlike FastMCP, which hides the tool,
the runtime answers a refused call with 403 and the missing scopes.

Design constraint: a check becomes a permission at registration, and is evaluated with all other permissions.
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
    """A resource, a resource template or a prompt, as a check sees it."""

    name: str
    tags: frozenset[str]
    meta: dict[str, Any] | None
    uri: str | None = None
    """URI of a resource. For a template, the URI that is read, if any."""
    uri_template: str | None = None


@dataclass(frozen=True)
class AuthContext:
    """The argument of a check."""

    token: Any
    """The caller's token; ``None`` where there is none."""
    component: Any
    """The component to be used, which has ``name``, ``tags`` and ``meta``."""

    @property
    def tool(self) -> Any:
        """The component, where it is a tool."""
        return None if isinstance(self.component, Component) else self.component


AuthCheck = Callable[[AuthContext], bool | Awaitable[bool]]


class AuthorizationError(Denied):
    """An exception that a check may raise in order to deny with a message of its own."""


class _Scopes:
    """Requires scopes of the caller's token. With a tag, only components with that tag require them."""

    def __init__(self, scopes: Iterable[str], tag: str | None = None) -> None:
        self.scopes = frozenset(scopes)
        self.tag = tag

    def __call__(self, context: AuthContext) -> bool:
        return not self.missing_scopes(context)

    def missing_scopes(self, context: AuthContext) -> list[str]:
        """The scopes that the token lacks."""
        if self.tag is not None and self.tag not in context.component.tags:
            return []
        return sorted(self.scopes - set(getattr(context.token, "scopes", None) or ()))


def require_scopes(*scopes: str) -> AuthCheck:
    """A check that the caller's token has all these scopes."""
    return _Scopes(scopes)


def restrict_tag(tag: str, *, scopes: list[str]) -> AuthCheck:
    """A check that requires these scopes for components with the tag."""
    return _Scopes(scopes, tag)


def require_roles(*roles: str, extract: Callable[[dict[str, Any]], Iterable[str]]) -> AuthCheck:
    """A check that the caller has all these roles, which ``extract`` finds in the token's claims."""
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


def component_guards(auth: Any, component: Any, timeout: float | None = None) -> Guards:
    """The guards of a component. Raises ``RegistrationError`` for a check that isn't a function."""
    checks = [] if auth is None else list(auth) if isinstance(auth, list | tuple) else [auth]
    for check in checks:
        if not callable(check):
            raise RegistrationError(f"auth of {component.name!r}: {check!r} is no function of an AuthContext")
    if not checks and timeout is None:
        return UNGUARDED
    return Guards(tuple(_permission(check, component) for check in checks), timeout=timeout)


def _permission(check: AuthCheck, component: Any) -> Permission:
    def check_answer(agreed: Any, context: AuthContext) -> None:
        if not agreed:
            missing = check.missing_scopes(context) if isinstance(check, _Scopes) else []
            raise Denied(f"needs the scopes {' '.join(missing)}" if missing else "not permitted", scopes=missing)

    def ask(asked: AccessRequest) -> None:
        if asked.transport != "stdio":
            context = AuthContext(asked.principal, _read(component, asked))
            agreed = check(context)
            if inspect.isawaitable(agreed):
                raise TypeError(f"the check of {component.name!r} is awaitable: make it a coroutine function")
            check_answer(agreed, context)

    async def ask_later(asked: AccessRequest) -> None:
        if asked.transport != "stdio":
            context = AuthContext(asked.principal, _read(component, asked))
            agreed = check(context)
            check_answer(await agreed if inspect.isawaitable(agreed) else agreed, context)

    return ask_later if is_async(check) else ask


def _read(component: Any, asked: AccessRequest) -> Any:
    """The component; a resource template includes the URI that is read."""
    return component if asked.uri is None else replace(component, uri=asked.uri)
