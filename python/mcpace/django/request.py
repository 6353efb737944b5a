"""A call as Django code knows one: a request with a user and data, and a view with an action.

Design constraint: what a call doesn't ask for isn't made. A request is a few attributes until somebody looks at its
headers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from rest_framework.request import Request


class ToolRequest(Request):
    """REST framework's request, of a call: ``user``, ``auth`` and ``data`` (the arguments) are there, the rest is made
    when it is asked for. Its method is POST."""

    # Not the base's: it wants an HttpRequest, which few calls look at.
    def __init__(self, call: Call) -> None:
        self._call = call
        self._auth = call.auth
        self._data = self._full_data = call.arguments
        self._files: dict[str, Any] = {}
        self._content_type = "application/json"
        self._stream = None
        self._made: HttpRequest | None = None
        self.parsers = self.authenticators = ()
        self.method = "POST"
        self.content_type = "application/json"
        self.accepted_renderer = self.version = self.versioning_scheme = None

    content_type = "application/json"

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
            made = HttpRequest()
            made.method = "POST"
            made.META = _meta(self._call.headers)
            made.user = self.user
            made.path = made.path_info = "/"
            self._made = made
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

    __slots__ = ("_acting", "_core", "_request", "_user", "_view", "action", "arguments", "principal")

    def __init__(
        self, action: str, arguments: dict[str, Any], core: Any = None, *, user: Any = None, request: Any = None
    ) -> None:
        """``core`` is what the runtime tells of a call; without it, it is one of this process, on ``user``'s behalf."""
        self.action = action
        self.arguments = arguments
        self.principal = None if core is None else core.principal
        self._core = core
        self._user = user
        self._request = request
        self._view: ToolView | None = None
        self._acting: Callable[[], Any] | None = None

    @property
    def user(self) -> Any:
        """Django's user; nobody is ``AnonymousUser``."""
        if self._user is None:
            self._user = getattr(self.principal, "user", None)
            if self._user is None and self._acting is not None:
                self._user = self._acting()
            if self._user is None:
                self._user = AnonymousUser()
        return self._user

    @user.setter
    def user(self, user: Any) -> None:
        self._user = user

    def acts_for(self, acting: Callable[[], Any]) -> None:
        """What gives the user whom it is for, where nobody is authenticated; called when somebody wants to know."""
        self._acting = acting

    @property
    def auth(self) -> Any:
        """What the backend knows of the token: REST framework's ``request.auth``."""
        return getattr(self.principal, "raw", None)

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP request's, by name in lower case; none over stdio and in this process."""
        return {} if self._core is None else self._core.headers

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
        key = name.upper().replace("-", "_")
        meta[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
    return meta
