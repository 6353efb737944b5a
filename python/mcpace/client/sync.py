"""``SyncClient``: the client without ``await``, for scripts, notebooks and threads.

Design constraint: there is no event loop. The calling thread waits for a request, and Ctrl-C ends the wait. Callbacks
are ordinary functions, called on other threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from mcpace import _core
from mcpace.client import asking, results, within
from mcpace.client.errors import parse_result, user_exception
from mcpace.client.requests import CacheMode, Request, Requests, ResultT, request_extras
from mcpace.types import CallToolResult, GetPromptResult, LoggingLevel, ReadResourceResult

_PROBLEMS = (_core.CallProblem, _core.UsageProblem)


class SyncClient(Requests):
    """A client of one server; see :class:`mcpace.Client`.

    Example::

        with SyncClient(["python", "server.py"]) as client:
            print(client.call_tool("greet", {"name": "Ada"}).content[0].text)
    """

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> None:
        """Connects, authorizes if the server requires it, and negotiates a revision."""
        if self._caller_or_none is not None:
            raise RuntimeError("this client is connected already")
        callbacks = self._callbacks
        self._entered = within.enter_lifespan(self._place)
        try:
            self._caller_or_none = _wait(
                self._open_session(
                    lambda question: asking.answer_now(callbacks, question), callbacks.news, in_loop=False
                )
            )
        except BaseException:
            within.leave(self._entered)
            raise

    def close(self) -> None:
        """Closes the connection, within a limited time. Does nothing on a client that isn't connected."""
        caller, self._caller_or_none, self._connected = self._caller_or_none, None, None
        if caller is None:
            return
        try:
            _wait(caller.close())
        finally:
            within.leave(self._entered)

    def call_tool(
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
        more = request_extras(read_timeout_seconds, progress_callback, meta)
        return _get(self._call_tool(name, arguments, more, input_responses, request_state))

    def list_tools(
        self, *, cursor: str | None = None, meta: Mapping[str, Any] | None = None, cache_mode: CacheMode | None = None
    ) -> results.ListToolsResult:
        """A page of tools."""
        pending = self._list("tools", cursor, request_extras(meta=meta, cache=cache_mode))
        return _get((pending, results.ListToolsResult.model_validate_json))

    def list_resources(
        self, *, cursor: str | None = None, meta: Mapping[str, Any] | None = None, cache_mode: CacheMode | None = None
    ) -> results.ListResourcesResult:
        """A page of resources."""
        pending = self._list("resources", cursor, request_extras(meta=meta, cache=cache_mode))
        return _get((pending, results.ListResourcesResult.model_validate_json))

    def list_resource_templates(
        self, *, cursor: str | None = None, meta: Mapping[str, Any] | None = None, cache_mode: CacheMode | None = None
    ) -> results.ListResourceTemplatesResult:
        """A page of templates of resources."""
        pending = self._list("resource_templates", cursor, request_extras(meta=meta, cache=cache_mode))
        return _get((pending, results.ListResourceTemplatesResult.model_validate_json))

    def list_prompts(
        self, *, cursor: str | None = None, meta: Mapping[str, Any] | None = None, cache_mode: CacheMode | None = None
    ) -> results.ListPromptsResult:
        """A page of prompts."""
        pending = self._list("prompts", cursor, request_extras(meta=meta, cache=cache_mode))
        return _get((pending, results.ListPromptsResult.model_validate_json))

    def read_resource(
        self, uri: str, *, meta: Mapping[str, Any] | None = None, cache_mode: CacheMode | None = None
    ) -> ReadResourceResult:
        """Reads a resource."""
        return _get(self._read(uri, request_extras(meta=meta, cache=cache_mode)))

    def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, meta: Mapping[str, Any] | None = None
    ) -> GetPromptResult:
        """Gets the messages of a prompt."""
        return _get(self._get_prompt(name, arguments, request_extras(meta=meta)))

    def complete(
        self, ref: Any, argument: Mapping[str, str], context_arguments: Mapping[str, str] | None = None
    ) -> results.CompleteResult:
        """Proposals for an argument (``{"name": …, "value": …}``) of a prompt or a resource template."""
        return _get(self._complete(ref, argument, context_arguments))

    def send_ping(self, *, meta: Mapping[str, Any] | None = None) -> results.EmptyResult:
        """Checks that the server answers (legacy revisions)."""
        return _get(self._empty_request("ping", {}, meta))

    def set_logging_level(self, level: LoggingLevel, *, meta: Mapping[str, Any] | None = None) -> results.EmptyResult:
        """Sets the lowest level of wanted log messages (legacy revisions; otherwise ``log_level=`` of the client)."""
        return _get(self._empty_request("logging/setLevel", {"level": level}, meta))


def _wait(pending: _core.Pending) -> Any:
    try:
        return pending.wait()
    except _PROBLEMS as problem:
        raise user_exception(problem) from None


def _get(request: Request[ResultT]) -> ResultT:
    pending, read = request
    return parse_result(_wait(pending), read)
