"""A call in the form that Django code expects: a request with a user and data, and a view with an action.

Design constraint: objects are made on first use. A request has only a few attributes until its headers are read.
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
    """Settings of a server that each of its calls needs."""

    acting: Callable[[], Any] | None = None
    """Returns the user of calls without authentication; called on first use of the user."""
    resource_url: str | None = None
    """URL of the endpoint as clients see it, the base of absolute URLs."""


NOWHERE = Site()


class SeenRequest(HttpRequest):
    """Django's request of a call, with the client's headers and the server's public URL."""

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
        """The host of the resource's URL, where that is known; it need not be in ``ALLOWED_HOSTS``. Otherwise the host
        that the client named, or ``localhost``."""
        if self._seen_host:
            return self._seen_host
        return str(super().get_host()) if "HTTP_HOST" in self.META else "localhost"

    def _get_scheme(self) -> str:
        return self._seen_scheme or "http"


class ToolRequest(Request):
    """REST framework's request of a call: ``user``, ``auth`` and ``data`` (the arguments) exist, all else is made on
    first use. Its method is POST."""

    # The base's constructor isn't called, because it needs an HttpRequest, which few calls use.
    def __init__(self, call: Call) -> None:
        self._call = call
        self._auth = call.auth
        self._data = self._full_data = call.arguments

    # Defaults of every call, which may be overridden on a request.
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
        """The user of the call. It may be set, for instance by code that signs a user in."""
        return self._call.user

    @user.setter
    def user(self, user: Any) -> None:
        self._call.user = user

    @property
    def parser_context(self) -> dict[str, Any]:
        """The context that parsers would get."""
        return {"view": self._call.view, "request": self, "args": (), "kwargs": {}}

    @property
    def negotiator(self) -> Any:
        """REST framework's default negotiator."""
        return self._default_negotiator()

    @property
    def _request(self) -> HttpRequest:
        if self._made is None:
            self._made = SeenRequest(self._call.headers, self._call.site.resource_url, self._call.client)
            self._made.user = self.user
        return self._made


class ToolView:
    """The view of a call, as permissions and providers see it."""

    args: tuple[()] = ()
    format_kwarg = None
    swagger_fake_view = False
    queryset = None

    def __init__(self, request: ToolRequest, action: str) -> None:
        self.request = request
        self.action = action
        self.kwargs: dict[str, Any] = {}

    def get_serializer_context(self) -> dict[str, Any]:
        """The serializer's context, with the keys that REST framework's views give it."""
        return {"request": self.request, "format": None, "view": self}


class Call:
    """One call: its action, its arguments and its caller."""

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
        """``core``: the runtime's record of the call; ``None`` for a call within the process on behalf of ``user``.
        ``limits`` count the call after its permissions."""
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
        """Django's user, ``AnonymousUser`` for a caller without one."""
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
        """The backend's record of the token, or else the principal: REST framework's ``request.auth``."""
        return getattr(self.principal, "raw", self.principal)

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the HTTP request, by name in lower case; empty over stdio and within the process."""
        return {} if self._core is None else self._core.headers

    @property
    def client(self) -> str:
        """The client's address, as in ``REMOTE_ADDR``; empty where it is unknown."""
        connection = getattr(self._core, "connection", None)
        return "" if connection is None or connection[0] is None else str(connection[0][0])

    @property
    def progress(self) -> Any:
        """A function that reports progress: ``(progress, *, total=None, message=None, meta=None)``."""
        core = self._core
        if core is None:
            return _discard_progress

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
        """The view of the call."""
        if self._view is None:
            self._view = ToolView(self.request, self.action)
        return self._view

    def context(self) -> dict[str, Any]:
        """A serializer's context, with the keys that REST framework's views give it."""
        return {"request": self.request, "format": None, "view": self.view}


def _discard_progress(
    progress: float, *, total: float | None = None, message: str | None = None, meta: Any = None
) -> None:
    """Discards progress, because a call within the process has no client that could receive it."""


def _meta(headers: Mapping[str, str]) -> dict[str, str]:
    meta = {}
    for name, value in headers.items():
        if "_" in name:
            # It could be mistaken for a header with "-" that a proxy has checked. Django's servers drop it, too.
            continue
        key = name.upper().replace("-", "_")
        meta[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
    return meta
