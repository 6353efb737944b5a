"""The requests of the protocol: the parameters for the compiled part, and the models of the results.

Design constraint: nothing here waits, so that both clients can share the module.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from mcpace import _core
from mcpace.client import options as opt
from mcpace.client import results, trace_context
from mcpace.client.asking import Callbacks
from mcpace.client.errors import parse_result
from mcpace.client.options import OAuth
from mcpace.types import CallToolResult, GetPromptResult, Implementation, ReadResourceResult, wire

ResultT = TypeVar("ResultT")
CacheMode: TypeAlias = Literal["use", "refresh", "bypass"]
Request: TypeAlias = tuple[_core.Pending, Callable[[bytes], ResultT]]

_CALLED = CallToolResult.model_validate_json
_READ = ReadResourceResult.model_validate_json
_GOT = GetPromptResult.model_validate_json
_EMPTY = results.EmptyResult.model_validate_json

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=wire).encode


class Requests:
    """The common base of both clients: their options, their state, and each request of the protocol."""

    def __init__(
        self,
        server: Any,
        *,
        read_timeout_seconds: float | None = None,
        sampling_callback: Callable[..., Any] | None = None,
        sampling_capabilities: Any = None,
        list_roots_callback: Callable[..., Any] | None = None,
        logging_callback: Callable[..., Any] | None = None,
        log_level: str | None = None,
        message_handler: Callable[..., Any] | None = None,
        client_info: Any = None,
        mode: str = "auto",
        elicitation_callback: Callable[..., Any] | None = None,
        input_required_max_rounds: int = 10,
        cache: bool = True,
        headers: Mapping[str, str] | None = None,
        auth: str | OAuth | None = None,
        tasks: bool = False,
        connect_timeout_seconds: float | None = None,
        max_connections: int | None = None,
        extra_root: str | None = None,
    ) -> None:
        self._place = opt.place(server)
        self._callbacks = Callbacks(
            self, sampling_callback, elicitation_callback, list_roots_callback, logging_callback, message_handler
        )
        self._oauth = auth if isinstance(auth, OAuth) else None
        if connect_timeout_seconds is None and self._oauth is None:
            # The limit also applies to the handshake's requests, unless a user may have to consent in a browser.
            connect_timeout_seconds = read_timeout_seconds
        self._settings = opt.settings(
            {
                "mode": mode,
                "client_info": client_info,
                "log_level": log_level,
                "tasks": tasks,
                "cache": cache,
                "headers": list(headers.items()) if headers else None,
                "extra_root": extra_root,
                "call_time_s": read_timeout_seconds,
                "connect_time_s": connect_timeout_seconds,
                "rounds": input_required_max_rounds,
                "connections": max_connections,
                "bearer": auth if isinstance(auth, str) else None,
                "oauth": None if self._oauth is None else self._oauth.settings(),
                "answered": self._callbacks.capabilities(sampling_capabilities),
            }
        )
        self._caller_or_none: _core.Caller | None = None
        self._connected: results.Connected | None = None

    @property
    def _caller(self) -> _core.Caller:
        if self._caller_or_none is None:
            kind = type(self).__name__
            raise RuntimeError(f"{kind} is not connected: use it in a 'with' statement, or call connect() first")
        return self._caller_or_none

    def _open_session(self, asks: Any, hears: Any, in_loop: bool) -> _core.Pending:
        place = self._place
        return _core.Caller.connect(
            place.target,
            self._settings,
            asks,
            hears=hears if self._callbacks.hears_notifications else None,
            opens=opt.page_opener(self._oauth),
            in_loop=in_loop,
            environment=place.environment,
            folder=place.folder,
            **({} if place.principal is None else {"principal": place.principal}),
        )

    # Description of the server -----------------------------------------------------------------------------------

    @property
    def protocol_version(self) -> str:
        """The revision that is spoken."""
        return self._caller.server()[0]

    @property
    def transport(self) -> str:
        """``streamable-http``, ``http+sse`` or ``stdio``."""
        return self._caller.server()[1]

    @property
    def _server_description(self) -> results.Connected:
        raw = self._caller.server()[2]
        if self._connected is None:
            self._connected = parse_result(raw, results.Connected.model_validate_json)
        return self._connected

    @property
    def server_info(self) -> Implementation | None:
        """Name and version of the server, which a server of 2026-07-28 may omit."""
        return self._server_description.declared_server_info

    @property
    def server_capabilities(self) -> results.ServerCapabilities:
        """The capabilities that the server declared."""
        return self._server_description.capabilities

    @property
    def instructions(self) -> str | None:
        """The server's instructions for a model."""
        return self._server_description.instructions

    # Requests ----------------------------------------------------------------------------------------------------

    def _call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        request_extras: dict[str, Any] | None,
        input_responses: Any = None,
        request_state: str | None = None,
    ) -> Request[CallToolResult]:
        text = None if arguments is None else _encode(arguments)
        if input_responses is None and request_state is None:
            return self._caller.call_tool(name, text, request_extras), _CALLED
        responses = None if input_responses is None else _encode(wire(input_responses)).encode()
        return self._caller.resume_tool(name, text, responses, request_state, request_extras), _CALLED

    def _list(self, kind: str, cursor: str | None, request_extras: dict[str, Any] | None) -> _core.Pending:
        return self._caller.list(kind, cursor, request_extras)

    def _read(self, uri: str, request_extras: dict[str, Any] | None) -> Request[ReadResourceResult]:
        return self._caller.read_resource(str(uri), request_extras), _READ

    def _get_prompt(
        self, name: str, arguments: Mapping[str, str] | None, request_extras: dict[str, Any] | None
    ) -> Request[GetPromptResult]:
        return self._caller.get_prompt(name, None if arguments is None else _encode(arguments), request_extras), _GOT

    def _complete(
        self, ref: Any, argument: Mapping[str, str], context: Mapping[str, str] | None
    ) -> Request[results.CompleteResult]:
        params: dict[str, Any] = {"ref": wire(ref), "argument": dict(argument)}
        if context is not None:
            params["context"] = {"arguments": dict(context)}
        return self._request("completion/complete", params), results.CompleteResult.model_validate_json

    def _empty_request(self, method: str, params: dict[str, Any], meta: Any = None) -> Request[results.EmptyResult]:
        return self._request(method, params, request_extras(meta=meta)), _EMPTY

    def _request(self, method: str, params: dict[str, Any], more: dict[str, Any] | None = None) -> _core.Pending:
        return self._caller.request(method, _encode(params), more)

    def _filter(self, tools: bool, prompts: bool, resources: bool, uris: Sequence[str]) -> bytes:
        if isinstance(uris, str):
            raise TypeError("resource_subscriptions takes a sequence of URIs, not one string")
        wanted = results.SubscriptionFilter(
            tools_list_changed=tools or None,
            prompts_list_changed=prompts or None,
            resources_list_changed=resources or None,
            resource_subscriptions=list(uris) or None,
        )
        return _encode(wire(wanted)).encode()


def request_extras(
    time_s: float | None = None,
    progress: Callable[..., Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    cache: CacheMode | None = None,
) -> dict[str, Any] | None:
    """The options of a request beside its parameters; ``None`` where there are none, which costs nothing.

    The request belongs to the trace of OpenTelemetry's active span, unless ``meta`` names another.
    """
    # Without OpenTelemetry's API in the process, no span is active.
    if "opentelemetry.trace" in sys.modules:
        meta = trace_context.add_active_trace(meta)
    if time_s is None and progress is None and meta is None and cache is None:
        return None
    told = {
        "time_s": None if time_s is None else float(time_s),
        "progress": progress,
        "meta": None if meta is None else _encode(wire(meta)).encode(),
        "cache": cache,
    }
    return {name: value for name, value in told.items() if value is not None}
