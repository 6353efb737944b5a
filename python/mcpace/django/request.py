"""A call as Django code knows one: a request with a user and data, and a view with an action.

Design constraint: what a call doesn't ask for isn't made. A request is a few attributes until somebody looks at its
headers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from rest_framework.request import Request


@dataclass(frozen=True, slots=True)
class Site:
    """What a server tells each of its calls."""

    acting: Callable[[], Any] | None = None
    """Gives the user whom calls are for, where nobody is authenticated; called when somebody wants to know."""
    resource_url: str | None = None
    """The endpoint as clients see it: what absolute URLs are made of."""


NOWHERE = Site()


class SeenRequest(HttpRequest):
    """Django's request, of a call: the client's headers, and where clients see the server."""

    def __init__(self, headers: Mapping[str, str], resource_url: str | None, client: str = "") -> None:
        super().__init__()
        seen = urlsplit(resource_url or "")
        self._seen_scheme, self._seen_host = seen.scheme, seen.netloc
        self.method = "POST"
        self.path = self.path_info = seen.path or "/"
        self.META = {
            "REQUEST_METHOD": "POST",
            "REMOTE_ADDR": client,
            "SERVER_NAME": seen.hostname or "localhost",
            "SERVER_PORT": str(seen.port or (443 if seen.scheme == "https" else 80)),
            **_meta(headers),
        }

    def get_host(self) -> str:
        """The resource's own, where that is known, which need be none of ``ALLOWED_HOSTS``; else the client's, where
        there is one."""
        if self._seen_host:
            return self._seen_host
        return str(super().get_host()) if "HTTP_HOST" in self.META else "localhost"

    def _get_scheme(self) -> str:
        return self._seen_scheme or "http"


class ToolRequest(Request):
    """REST framework's request, of a call: ``user``, ``auth`` and ``data`` (the arguments) are there, the rest is made
    when it is asked for. Its method is POST."""

    # Not the base's: it wants an HttpRequest, which few calls look at.
    def __init__(self, call: Call) -> None:
        self._call = call
        self._auth = call.auth
        self._data = self._full_data = call.arguments

    # Of every call, until somebody sets them on a request.
    _content_type = content_type = "application/json"
    _stream = None
    _made: HttpRequest | None = None
    parsers = authenticators = ()
    method = "POST"
    accepted_renderer = version = versioning_scheme = None

    @cached_property
    def _files(self) -> dict[str, Any]:
        return {}

    @property
    def user(self) -> Any:
        """The call's; it may be set, as by whoever signs somebody in."""
        return self._call.user

    @user.setter
    def user(self, user: Any) -> None:
        self._call.user = user

    @property
    def parser_context(self) -> dict[str, Any]:
        """What parsers would be told."""
        return {"view": self._call.view, "request": self, "args": (), "kwargs": {}}

    @property
    def negotiator(self) -> Any:
        """REST framework's."""
        return self._default_negotiator()

    @property
    def _request(self) -> HttpRequest:
        if self._made is None:
            self._made = SeenRequest(self._call.headers, self._call.site.resource_url, self._call.client)
            self._made.user = self.user
        return self._made


class ToolView:
    """What a permission and a provider see as the view."""

    args: tuple[()] = ()
    format_kwarg = None
    swagger_fake_view = False
    queryset = None

    def __init__(self, request: ToolRequest, action: str) -> None:
        self.request = request
        self.action = action
        self.kwargs: dict[str, Any] = {}

    def get_serializer_context(self) -> dict[str, Any]:
        """As REST framework's views have it."""
        return {"request": self.request, "format": None, "view": self}


class Call:
    """Who calls what with which arguments."""

    __slots__ = ("_core", "_request", "_user", "_view", "action", "arguments", "limits", "principal", "site")

    def __init__(
        self,
        action: str,
        arguments: dict[str, Any],
        core: Any = None,
        *,
        site: Site = NOWHERE,
        limits: Sequence[Any] = (),
        user: Any = None,
        request: Any = None,
    ) -> None:
        """``core`` is what the runtime tells of a call; without it, it is one of this process, on ``user``'s behalf.
        ``limits`` count it once it is permitted."""
        self.action = action
        self.arguments = arguments
        self.principal = None if core is None else core.principal
        self._core = core
        self._user = user
        self._request = request
        self._view: ToolView | None = None
        self.site = site
        self.limits = limits

    @property
    def user(self) -> Any:
        """Django's user; nobody is ``AnonymousUser``."""
        if self._user is None:
            self._user = getattr(self.principal, "user", None)
            if self._user is None and self.site.acting is not None:
                self._user = self.site.acting()
            if self._user is None:
                self._user = AnonymousUser()
        return self._user

    @user.setter
    def user(self, user: Any) -> None:
        self._user = user

    @property
    def auth(self) -> Any:
        """What the backend knows of the token, or else the token: REST framework's ``request.auth``."""
        return getattr(self.principal, "raw", self.principal)

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP request's, by name in lower case; none over stdio and in this process."""
        return {} if self._core is None else self._core.headers

    @property
    def client(self) -> str:
        """The client's address, as ``REMOTE_ADDR`` has it; empty where nobody knows."""
        connection = getattr(self._core, "connection", None)
        return "" if connection is None or connection[0] is None else str(connection[0][0])

    @property
    def progress(self) -> Any:
        """Tells how far the call is: ``(progress, *, total=None, message=None, meta=None)``."""
        core = self._core
        if core is None:
            return _silent

        def report(
            progress: float, *, total: float | None = None, message: str | None = None, meta: Any = None
        ) -> None:
            core.progress(progress, total, message)

        return report

    @property
    def request(self) -> Any:
        """REST framework's request."""
        if self._request is None:
            self._request = ToolRequest(self)
        return self._request

    @property
    def view(self) -> ToolView:
        """What stands for the view."""
        if self._view is None:
            self._view = ToolView(self.request, self.action)
        return self._view

    def context(self) -> dict[str, Any]:
        """A serializer's context, as REST framework's views give it."""
        return {"request": self.request, "format": None, "view": self.view}


def _silent(progress: float, *, total: float | None = None, message: str | None = None, meta: Any = None) -> None:
    """Nobody wants to know."""


def _meta(headers: Mapping[str, str]) -> dict[str, str]:
    meta = {}
    for name, value in headers.items():
        if "_" in name:
            # Another spelling of a name with "-", which a proxy may have looked at: Django's servers drop it, too.
            continue
        key = name.upper().replace("-", "_")
        meta[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
    return meta
