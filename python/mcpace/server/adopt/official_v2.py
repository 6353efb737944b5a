"""The handlers of a low-level server of the official SDK 2.x, middleware included, run for one exchange at a time.

Design constraint: every request goes through the SDK's own ``ServerRunner``, so that replies are the SDK's. Only the
outgoing side is replaced: notifications and questions go to the exchange. No module is imported that the server
object's own module has not imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pydantic_core

from mcpace.server.adopt.http_request import request_of
from mcpace.server.adopt.official_common import Sdk
from mcpace.server.core.exchange_loop import Json, Refusal, ask, notify, params_of

if TYPE_CHECKING:
    from mcpace._core import Exchange

MODERN = "2026-07-28"


class Sdk2(Sdk):
    """A low-level ``Server`` of mcp 2.x, ready to answer exchanges."""

    def __init__(self, server: Any, around: AbstractAsyncContextManager[Any] | None = None) -> None:
        """``around`` is entered before the server's own lifespan."""
        super().__init__(server, around)
        self._runner = import_module("mcp.server.runner")
        connection = import_module("mcp.server.connection")
        self._connection, self._notify_only = connection.Connection, connection.NotifyOnlyOutbound
        self._error = import_module("mcp.shared.exceptions")
        self._metadata = import_module("mcp.shared.message").ServerMessageMetadata
        self._transport = import_module("mcp.shared.transport_context").TransportContext
        self._dispatcher = import_module("mcp.shared.jsonrpc_dispatcher")

    async def answer(self, exchange: Exchange) -> bytes:
        """The result's JSON. Raises :class:`Refusal`."""
        params = params_of(exchange)
        user = self._user(exchange)
        request = request_of(exchange, user)
        modern = exchange.revision == MODERN
        kept = None if modern else self._session_state(exchange, request)
        dispatch = Dispatch(self, exchange, params, request, can_ask=kept is not None)
        try:
            if modern:
                if exchange.method == "tools/call" and request is not None:
                    await self._check_headers(exchange, params or {}, request)
                result = await self._runner.serve_one(
                    self._server,
                    dispatch,
                    exchange.method,
                    params,
                    connection=self._request_envelope(exchange, params),
                    lifespan_state=self._state,
                )
            else:
                connection = kept.connection if kept is not None else self._request_envelope(exchange, None)
                runner = self._runner.ServerRunner(self._server, connection, self._state)
                result = await runner.on_request(dispatch, exchange.method, params)
        except Exception as error:
            raise self._refusal(error, modern) from error
        finally:
            dispatch.closed = True
        return pydantic_core.to_json(result, inf_nan_mode="null")

    def _session_state(self, exchange: Exchange, request: Any) -> SessionState | None:
        """The SDK's state of a session; ``None`` without a session."""
        if not exchange.has_session:
            return None
        kept: SessionState | None = exchange.kept
        if kept is None:
            kept = SessionState(self._connection.for_loop(Standalone(self), protocol_version_hint=exchange.revision))
            exchange.keep(kept)
        elif not kept.connection.initialized.is_set():
            # The runtime receives the client's `initialized` notification.
            kept.connection.initialized.set()
        if kept.connection.session_id is None and request is not None:
            kept.connection.session_id = request.headers.get("mcp-session-id")
        return kept

    def _request_envelope(self, exchange: Exchange, params: Json | None) -> Any:
        meta = (params or {}).get("_meta") or {}
        # The SDK sends notifications that belong to no request over stdio, and drops them over HTTP.
        duplex = {"outbound": self._notify_only(Standalone(self))} if exchange.headers is None else {}
        return self._connection.from_envelope(
            exchange.revision,
            meta.get("io.modelcontextprotocol/clientInfo"),
            meta.get("io.modelcontextprotocol/clientCapabilities"),
            **duplex,
        )

    async def _check_headers(self, exchange: Exchange, params: Json, request: Any) -> None:
        """Raises :class:`Refusal` if headers contradict the arguments, as the SDK's HTTP transport does."""
        meta = params.get("_meta") or {}
        caller = SimpleNamespace(
            protocol_version=exchange.revision,
            client_info=meta.get("io.modelcontextprotocol/clientInfo"),
            client_capabilities=meta.get("io.modelcontextprotocol/clientCapabilities"),
        )
        call = SimpleNamespace(id=exchange.id, method=exchange.method, params=params)
        transport = import_module("mcp.server._streamable_http_modern")
        rejection = await transport._mcp_param_rejection(self._server, request, call, caller, self._state)
        if rejection is not None:
            raise Refusal(rejection.code, rejection.message, rejection.data)

    def _refusal(self, error: Exception, modern: bool) -> Refusal:
        if isinstance(error, Refusal):
            return error
        if modern:
            data = self._runner.modern_error_data(error)
        else:
            data = self._dispatcher.handler_exception_to_error_data(error)
            if data is None:
                self._dispatcher.logger.exception("request handler raised")
                return Refusal(0, str(error))
        return Refusal(data.code, data.message, pydantic_core.to_jsonable_python(data.data, by_alias=True))


class SessionState:
    """The SDK's connection, kept for the lifetime of the runtime's session."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection


class Dispatch:
    """The SDK's ``DispatchContext`` of one request."""

    def __init__(self, sdk: Sdk2, exchange: Exchange, params: Json | None, request: Any, can_ask: bool) -> None:
        import anyio

        headers = None if request is None else request.headers
        kind = "stdio" if request is None else "streamable-http"
        self._sdk = sdk
        self._can_ask = can_ask
        self.closed = False
        self.transport = sdk._transport(kind=kind, can_send_request=can_ask, headers=headers)
        self.message_metadata = sdk._metadata(request_context=request)
        self.request_id = exchange.id
        self.cancel_requested = anyio.Event()
        self._progress_token = sdk._dispatcher.progress_token_from_params(params)

    @property
    def can_send_request(self) -> bool:
        return self._can_ask and not self.closed

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> Json:
        if not self.can_send_request:
            raise self._sdk._error.NoBackChannelError(method)
        return await await_answer(self._sdk, method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> None:
        if not self.closed:
            notify(method, params)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self._progress_token is None:
            return
        params: Json = {"progressToken": self._progress_token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await self.notify("notifications/progress", params)


class Standalone:
    """The outgoing side of a connection for messages that belong to no request. They are sent with the current request;
    the runtime finds the stream that the client reads."""

    def __init__(self, sdk: Sdk2) -> None:
        self._sdk = sdk

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> Json:
        return await await_answer(self._sdk, method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> None:
        notify(method, params)


async def await_answer(sdk: Sdk2, method: str, params: Mapping[str, Any] | None, opts: Any) -> Json:
    """Asks the client. Returns its answer, or raises the SDK's error."""
    import anyio

    limit = (opts or {}).get("timeout")
    try:
        with anyio.fail_after(limit):
            return await ask(method, params)
    except TimeoutError:
        raise sdk._error.MCPError(code=-32001, message=f"Request {method!r} timed out") from None
    except Refusal as refusal:
        raise sdk._error.MCPError(code=refusal.code, message=refusal.message, data=refusal.data) from None
