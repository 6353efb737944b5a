"""``Client``, for asyncio and for anyio on asyncio.

Design constraint: each request is one awaitable object of the compiled part, which does all the work.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from mcpace import _core
from mcpace.client import results, within
from mcpace.client.asking import Soon
from mcpace.client.errors import ListenNotSupportedError, parse_result, user_exception
from mcpace.client.requests import CacheMode, Request, Requests, ResultT, request_extras
from mcpace.client.subscription import Subscription
from mcpace.types import MODERN, CallToolResult, GetPromptResult, LoggingLevel, ReadResourceResult

_PROBLEMS = (_core.CallProblem, _core.UsageProblem)


class Client(Requests):
    """A client of one server: a URL, a command (a list), :class:`StdioServerParameters`, or a server of this process.

    Example::

        async with Client("http://127.0.0.1:8000/mcp") as client:
            result = await client.call_tool("greet", {"name": "Ada"})

    Requests may run at the same time. Cancelling one (``asyncio.timeout``, ``Task.cancel``) cancels it at the server.
    """

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def connect(self) -> None:
        """Connects, authorizes if the server requires it, and negotiates a revision."""
        if self._caller_or_none is not None:
            raise RuntimeError("this client is connected already")
        self._soon = Soon(self._callbacks)
        self._entered = await asyncio.to_thread(within.enter_lifespan, self._place)
        try:
            self._caller_or_none = await self._open_session(self._soon.ask, self._soon.hear, in_loop=True)
        except _PROBLEMS as problem:
            await asyncio.to_thread(within.leave, self._entered)
            raise user_exception(problem) from None
        except BaseException:
            await asyncio.to_thread(within.leave, self._entered)
            raise

    async def close(self) -> None:
        """Closes the connection, within a limited time. Does nothing on a client that isn't connected."""
        caller, self._caller_or_none, self._connected = self._caller_or_none, None, None
        if caller is None:
            return
        try:
            await caller.close()
        finally:
            for task in list(self._soon.tasks):
                task.cancel()
            await asyncio.to_thread(within.leave, self._entered)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        read_timeout_seconds: float | None = None,
        progress_callback: Callable[[float, float | None, str | None], Any] | None = None,
        *,
        input_responses: Any = None,
        request_state: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> CallToolResult:
        """Calls a tool. A failure of the tool raises no exception but sets ``is_error``."""
        if progress_callback is not None:
            return await self._call_with_progress(
                name, arguments, read_timeout_seconds, progress_callback, input_responses, request_state, meta
            )
        more = request_extras(read_timeout_seconds, None, meta)
        return await _get(self._call_tool(name, arguments, more, input_responses, request_state))

    async def _call_with_progress(
        self, name: str, arguments: Any, time_s: Any, hear: Any, responses: Any, state: Any, meta: Any
    ) -> CallToolResult:
        told: list[asyncio.Task[Any]] = []

        def progress(value: float, total: float | None, message: str | None) -> None:
            given = hear(value, total, message)
            if inspect.iscoroutine(given):
                told.append(asyncio.get_running_loop().create_task(given))

        try:
            return await _get(
                self._call_tool(name, arguments, request_extras(time_s, progress, meta), responses, state)
            )
        finally:
            # All progress callbacks have finished when the call returns.
            if told:
                await asyncio.gather(*told, return_exceptions=True)

    async def list_tools(
        self, *, cursor: str | None = None, meta: Mapping[str, Any] | None = None, cache_mode: CacheMode | None = None
    ) -> results.ListToolsResult:
        """A page of tools."""
        pending = self._list("tools", cursor, request_extras(meta=meta, cache=cache_mode))
        return await _get((pending, results.ListToolsResult.model_validate_json))

    async def list_resources(
        self, *, cursor: str | None = None, meta: Mapping[str, Any] | None = None, cache_mode: CacheMode | None = None
    ) -> results.ListResourcesResult:
        """A page of resources."""
        pending = self._list("resources", cursor, request_extras(meta=meta, cache=cache_mode))
        return await _get((pending, results.ListResourcesResult.model_validate_json))

    async def list_resource_templates(
        self, *, cursor: str | None = None, meta: Mapping[str, Any] | None = None, cache_mode: CacheMode | None = None
    ) -> results.ListResourceTemplatesResult:
        """A page of templates of resources."""
        pending = self._list("resource_templates", cursor, request_extras(meta=meta, cache=cache_mode))
        return await _get((pending, results.ListResourceTemplatesResult.model_validate_json))

    async def list_prompts(
        self, *, cursor: str | None = None, meta: Mapping[str, Any] | None = None, cache_mode: CacheMode | None = None
    ) -> results.ListPromptsResult:
        """A page of prompts."""
        pending = self._list("prompts", cursor, request_extras(meta=meta, cache=cache_mode))
        return await _get((pending, results.ListPromptsResult.model_validate_json))

    async def read_resource(
        self, uri: str, *, meta: Mapping[str, Any] | None = None, cache_mode: CacheMode | None = None
    ) -> ReadResourceResult:
        """Reads a resource."""
        return await _get(self._read(uri, request_extras(meta=meta, cache=cache_mode)))

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, meta: Mapping[str, Any] | None = None
    ) -> GetPromptResult:
        """Gets the messages of a prompt."""
        return await _get(self._get_prompt(name, arguments, request_extras(meta=meta)))

    async def complete(
        self, ref: Any, argument: Mapping[str, str], context_arguments: Mapping[str, str] | None = None
    ) -> results.CompleteResult:
        """Proposals for an argument (``{"name": …, "value": …}``) of a prompt or a resource template."""
        return await _get(self._complete(ref, argument, context_arguments))

    async def send_ping(self, *, meta: Mapping[str, Any] | None = None) -> results.EmptyResult:
        """Checks that the server answers (legacy revisions)."""
        return await _get(self._empty_request("ping", {}, meta))

    async def set_logging_level(
        self, level: LoggingLevel, *, meta: Mapping[str, Any] | None = None
    ) -> results.EmptyResult:
        """Sets the lowest level of wanted log messages (legacy revisions; otherwise ``log_level=`` of the client)."""
        return await _get(self._empty_request("logging/setLevel", {"level": level}, meta))

    async def subscribe_resource(self, uri: str, *, meta: Mapping[str, Any] | None = None) -> results.EmptyResult:
        """Subscribes to changes of a resource (legacy revisions; otherwise :meth:`listen`)."""
        return await _get(self._empty_request("resources/subscribe", {"uri": uri}, meta))

    async def unsubscribe_resource(self, uri: str, *, meta: Mapping[str, Any] | None = None) -> results.EmptyResult:
        """Ends a subscription of :meth:`subscribe_resource`."""
        return await _get(self._empty_request("resources/unsubscribe", {"uri": uri}, meta))

    async def send_roots_list_changed(self) -> None:
        """Notifies the server that the roots have changed (legacy revisions)."""
        try:
            await self._caller.notify("notifications/roots/list_changed", "{}")
        except _PROBLEMS as problem:
            raise user_exception(problem) from None

    def listen(
        self,
        *,
        tools_list_changed: bool = False,
        prompts_list_changed: bool = False,
        resources_list_changed: bool = False,
        resource_subscriptions: Sequence[str] = (),
    ) -> Subscription:
        """Listens for changes (2026-07-28): ``async with client.listen(…) as changes: async for change in changes``."""
        wanted = self._filter(tools_list_changed, prompts_list_changed, resources_list_changed, resource_subscriptions)
        revision = self.protocol_version
        if revision < MODERN:
            words = f"subscriptions/listen needs {MODERN}; this server speaks {revision}: use subscribe_resource"
            raise ListenNotSupportedError("not-in-revision", words)
        return Subscription(lambda: self._caller.listen(wanted))


async def _get(request: Request[ResultT]) -> ResultT:
    pending, read = request
    try:
        raw = await pending
    except _PROBLEMS as problem:
        raise user_exception(problem) from None
    return parse_result(raw, read)
