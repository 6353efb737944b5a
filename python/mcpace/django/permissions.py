"""Permissions of tools, resources and prompts: REST framework's permission classes, and two additional ones.

A spec's ``permission_classes`` and a registration's ``permissions`` are checked in order; the first denial ends the
call. A denial isn't a result, which a model might retry. It is a protocol error, and over HTTP it is 403 with a
challenge that names the missing scopes.

Rate limits count permitted calls only, so a caller without permission can't use up a limit.

Design constraint: one function, :func:`check`, decides, in the thread and the transaction of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from rest_framework.permissions import AllowAny, BasePermission, OperandHolder, SingleOperandHolder

from mcpace.django.request import Call
from mcpace.server.errors import RegistrationError

Maker = Callable[[], Any]


class Forbidden(Exception):
    """A denial. ``scopes`` are those that the caller's token would need."""

    def __init__(self, message: str, scopes: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.scopes = tuple(scopes)


class ScopeRequired(BasePermission):
    """Requires a token with all of these scopes: ``ScopeRequired("invoices:write")``."""

    def __init__(self, scopes: str | Sequence[str]) -> None:
        self.scopes = (scopes,) if isinstance(scopes, str) else tuple(scopes)
        if not self.scopes:
            raise ImproperlyConfigured("ScopeRequired() lets everybody pass: name a scope")
        self.message = f"this needs the scope {' '.join(self.scopes)}"

    def has_permission(self, request: Any, view: Any) -> bool:
        """Whether the token grants all scopes."""
        granted = getattr(getattr(request, "_call", None), "principal", None)
        return set(self.scopes) <= set(getattr(granted, "scopes", None) or ())


class DjangoPermRequired(BasePermission):
    """Requires a user with all of these permissions: ``DjangoPermRequired("invoices.add_invoice")``."""

    def __init__(self, perms: str | Sequence[str]) -> None:
        self.perms = (perms,) if isinstance(perms, str) else tuple(perms)
        if not self.perms:
            raise ImproperlyConfigured("DjangoPermRequired() lets every user pass: name a permission")
        self.message = f"this needs the permission {' '.join(self.perms)}"

    def has_permission(self, request: Any, view: Any) -> bool:
        """Whether the user has all permissions."""
        return bool(request.user.is_authenticated and request.user.has_perms(self.perms))


def compile_permissions(
    spec_classes: Iterable[Any] | None, given: Iterable[Any] | None, label: str
) -> tuple[Maker, ...]:
    """Factories of the permissions. Raises ``RegistrationError`` for an object that isn't a permission.

    REST framework's ``AllowAny`` is left out: it never denies, and without it no request has to be made.
    """
    makers: list[Maker] = []
    for entry in [*(spec_classes or ()), *(given or ())]:
        if entry is AllowAny:
            continue
        if isinstance(entry, type) and issubclass(entry, BasePermission):
            makers.append(entry)
        elif isinstance(entry, OperandHolder | SingleOperandHolder):
            # `IsAuthenticated & IsOwner`
            makers.append(entry)
        elif callable(getattr(entry, "has_permission", None)) and not isinstance(entry, type):
            makers.append(partial(_itself, entry))
        else:
            raise RegistrationError(
                f"{label}: {entry!r} is no permission; give a REST framework permission class, or ScopeRequired(…), "
                "DjangoPermRequired(…)"
            )
    return tuple(makers)


def scopes_of(makers: Iterable[Maker]) -> tuple[str, ...]:
    """The scopes of all ``ScopeRequired`` permissions. The runtime requires them before a call begins, and names them
    in its challenge."""
    objects = [maker.args[0] for maker in makers if isinstance(maker, partial)]
    return tuple(dict.fromkeys(scope for one in objects if isinstance(one, ScopeRequired) for scope in one.scopes))


def check(makers: Sequence[Maker], call: Call) -> list[Any]:
    """Checks the permissions, then counts the call in its rate limits; returns the permissions. Raises
    :class:`Forbidden` for a denial, and the exceptions of :meth:`mcpace.django.limits.CacheRateLimit.take`.

    A permission class is instantiated for each call, as by REST framework's views, because it may keep state for its
    object permission.
    """
    permissions: list[Any] = []
    if makers:
        request, view = call.request, call.view
        permissions = [make() for make in makers]
        for permission in permissions:
            if not permission.has_permission(request, view):
                raise denial(permission)
    for limit in call.limits:
        limit.take(call.action, call)
    return permissions


def check_object(permissions: Sequence[Any], call: Call, instance: Any) -> None:
    """Checks the object permissions for the row of the call."""
    request, view = call.request, call.view
    for permission in permissions:
        asked = getattr(permission, "has_object_permission", None)
        if asked is not None and not asked(request, view, instance):
            raise denial(permission)


def _itself(permission: Any) -> Any:
    return permission


def denial(permission: Any) -> Forbidden:
    """The exception for a permission that denies."""
    message = getattr(permission, "message", None)
    told = message if isinstance(message, str) else "you do not have permission to perform this action"
    return Forbidden(told, getattr(permission, "scopes", ()))


def asks_more(makers: Iterable[Maker]) -> bool:
    """Whether there are permissions other than scopes, which the runtime can't check before a call begins."""
    return any(not isinstance(maker, partial) or not isinstance(maker.args[0], ScopeRequired) for maker in makers)


def is_named(spec_classes: Iterable[Any] | None, given: Iterable[Any] | None) -> bool:
    """Whether the spec or the registration names permissions. An empty list permits every caller."""
    return spec_classes is not None or given is not None
