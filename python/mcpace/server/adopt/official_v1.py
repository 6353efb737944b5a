"""The handlers of a low-level server of the official SDK 1.x, run for one exchange at a time.

Design constraint: the SDK's own code makes every reply. That code needs a session object: each session of the runtime
has one of the SDK's own class, whose outgoing messages go to the exchange and which has no streams.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pydantic_core
from pydantic import ValidationError

from mcpace.server.adopt.http_request import request_of
from mcpace.server.adopt.official_common import Sdk
from mcpace.server.core.exchange_loop import Json, Refusal, ask, notify, params_of

if TYPE_CHECKING:
    from mcpace._core import Exchange

INVALID_PARAMS = -32602
REQUEST_TIMEOUT = 408
RESUMABLE = "2025-11-25"
"""Revision since which a server may close the stream of a call that goes on."""


class Sdk1(Sdk):
    """A low-level ``Server`` of mcp 1.x, ready to answer exchanges."""

    def __init__(
        self,
        server: Any,
        around: AbstractAsyncContextManager[Any] | None = None,
        session: tuple[type, tuple[Any, ...]] | None = None,
        is_resumable: bool = False,
    ) -> None:
        """``around`` is entered before the server's own lifespan; ``session`` is the class of its sessions and the
        first constructor argument, if that is not the SDK's plain class. ``is_resumable``: the server has an event
        store, so its functions may close the stream of their call."""
        super().__init__(server, around)
        self._is_resumable = is_resumable
        self._types = import_module("mcp.types")
        self._shared = import_module("mcp.shared.session")
        self._metadata = import_module("mcp.shared.message").ServerMessageMetadata
        self._error = import_module("mcp.shared.exceptions").McpError
        base, first = session or (import_module("mcp.server.session").ServerSession, ())
        self._session_class, self._first = detached_session(base, self._types, self._error), first
        self._states = import_module("mcp.server.session").InitializationState

    async def answer(self, exchange: Exchange) -> bytes:
        """The result's JSON. Raises :class:`Refusal`."""
        session = self._session(exchange)
        types = self._types
        message: Json = {"jsonrpc": "2.0", "id": exchange.id, "method": exchange.method}
        params = params_of(exchange)
        if params is not None:
            message["params"] = params
        user = self._user(exchange)
        metadata = self._metadata(request_context=request_of(exchange, user), **self._stream_callbacks(exchange))
        try:
            dumped = types.JSONRPCRequest.model_validate(message).model_dump(
                by_alias=True, mode="json", exclude_none=True
            )
            request = types.ClientRequest.model_validate(dumped)
        except ValidationError:
            raise Refusal(INVALID_PARAMS, "Invalid request parameters", "") from None
        responder = self._shared.RequestResponder(
            request_id=exchange.id,
            request_meta=request.root.params.meta if request.root.params else None,
            request=request,
            session=session,
            on_complete=lambda done: session._in_flight.pop(done.request_id, None),
            message_metadata=metadata,
        )
        session._in_flight[exchange.id] = responder
        session.mcpace_answers.pop(exchange.id, None)
        try:
            try:
                await session._received_request(responder)
            except Exception:
                raise Refusal(INVALID_PARAMS, "Invalid request parameters", "") from None
            if not responder._completed:
                await self._server._handle_message(responder, session, self._state, False)
            answer = session.mcpace_answers.pop(exchange.id, None)
        finally:
            session._in_flight.pop(exchange.id, None)
        if answer is None:
            raise Refusal(0, "Request cancelled")
        if isinstance(answer, types.ErrorData):
            raise Refusal(answer.code, answer.message, answer.data)
        result = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        return pydantic_core.to_json(result, inf_nan_mode="null")

    def _stream_callbacks(self, exchange: Exchange) -> dict[str, Any]:
        """The callback ``close_sse_stream``, which the SDK gives calls of 2025-11-25 clients that can resume a
        stream."""
        if not self._is_resumable or exchange.headers is None or exchange.revision != RESUMABLE:
            return {}

        async def close_sse_stream() -> None:
            exchange.release()

        return {"close_sse_stream": close_sse_stream}

    def _session(self, exchange: Exchange) -> Any:
        if not exchange.has_session:
            return self._open(stateless=True)
        session = exchange.kept
        if session is None:
            session = self._open(stateless=False)
            exchange.keep(session)
        elif exchange.method != "initialize":
            # The runtime receives the client's `initialized` notification.
            session._initialization_state = self._states.Initialized
        return session

    def _open(self, stateless: bool) -> Any:
        options = self._server.create_initialization_options()
        return self._session_class(*self._first, None, None, options, stateless=stateless)


def detached_session(base: type, types: Any, error: Any) -> type:
    """A session class whose messages go to the exchange, without streams and without a task that reads them."""

    class Detached(base):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.mcpace_answers: dict[Any, Any] = {}
            # No message arrives here. Streams that stay open would cause a warning.
            self._incoming_message_stream_writer.close()
            self._incoming_message_stream_reader.close()

        async def _send_response(self, request_id: Any, response: Any) -> None:
            self.mcpace_answers[request_id] = response

        async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
            data = notification.model_dump(by_alias=True, mode="json", exclude_none=True)
            notify(data["method"], data.get("params"))

        async def send_request(
            self,
            request: Any,
            result_type: Any,
            request_read_timeout_seconds: Any = None,
            metadata: Any = None,
            progress_callback: Any = None,
        ) -> Any:
            import anyio

            data = request.model_dump(by_alias=True, mode="json", exclude_none=True)
            limit = request_read_timeout_seconds
            try:
                with anyio.fail_after(None if limit is None else limit.total_seconds()):
                    answer = await ask(data["method"], data.get("params"))
            except TimeoutError:
                said = f"Timed out while waiting for response to {type(request).__name__}."
                raise error(types.ErrorData(code=REQUEST_TIMEOUT, message=said)) from None
            except Refusal as refusal:
                raise error(types.ErrorData(code=refusal.code, message=refusal.message)) from None
            return result_type.model_validate(answer)

    Detached.__name__, Detached.__qualname__ = base.__name__, base.__qualname__
    return Detached
