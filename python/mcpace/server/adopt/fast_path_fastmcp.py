"""The fast path for tools of FastMCP 3 and 4, which the runtime calls itself. It has the design constraint of
:mod:`.fast_path_official`."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pydantic_core
from pydantic import ValidationError

from mcpace.server.adopt.fast_path import Answer, Rejected, Unfit, checker_of, failure_json, protocol_error_answer
from mcpace.server.adopt.json_arguments import Validate, reads_alike
from mcpace.server.registration.context_use_scan import find_context_use


def tools_of(server: Any) -> dict[str, Any]:
    """The server's own tools by name, without names that several tools share."""
    found: dict[str, list[Any]] = {}
    for tool in _handler_of(server, "Tool"):
        found.setdefault(tool.name, []).append(tool)
    return {name: tools[0] for name, tools in found.items() if len(tools) == 1}


def counts(server: Any) -> tuple[int, int, int]:
    """The numbers of the server's own resources, templates and prompts."""
    resources, templates, prompts = (
        len(_handler_of(server, name)) for name in ("Resource", "ResourceTemplate", "Prompt")
    )
    return (resources, templates, prompts)


def _handler_of(server: Any, name: str) -> list[Any]:
    components = server._local_provider._components.values()
    return [one for one in components if any(base.__name__ == name for base in type(one).__mro__)]


def handler(tool: Any, server: Any) -> Any:
    """The tool as a ``_core.Handler``. Raises :class:`Unfit`."""
    from mcpace import _core

    _check_tool(tool, server)
    is_2 = "mcp.server.mcpserver" in sys.modules or "mcp_types" in sys.modules
    return _core.Handler(
        tool.fn,
        kind="async" if inspect.iscoroutinefunction(tool.fn) else "sync",
        validate=_argument_reader(tool),
        output="text" if tool.output_schema is None else "custom",
        finish=_result_writer(tool, None if is_2 else checker_of(tool.output_schema)),
        fail=FailureAnswers(tool, server).fail,
    )


def _check_tool(tool: Any, server: Any) -> None:
    if type(tool).__module__ != "fastmcp.tools.function_tool":
        raise Unfit(f"it is a {type(tool).__name__}")
    if import_module("fastmcp.server.dependencies").without_injected_parameters(tool.fn) is not tool.fn:
        raise Unfit("it takes a context or dependencies")
    reasons = {
        "it has a time limit": tool.timeout is not None,
        "it has rules of its own about who may call it": tool.auth is not None,
        "it wants to run on the loop's thread": not getattr(tool, "run_in_thread", True),
        "it may run as a task": tool.task_config.mode != "forbidden",
        "it has versions": tool.version is not None,
        "it has a serializer of its own": getattr(tool, "serializer", None) is not None,
        "it has a user interface": "ui" in (tool.meta or {}) or "fastmcp" in (tool.meta or {}),
        "it yields": inspect.isgeneratorfunction(tool.fn) or inspect.isasyncgenfunction(tool.fn),
        "it is no plain function": not (inspect.isfunction(tool.fn) or inspect.ismethod(tool.fn)),
    }
    for reason, holds in reasons.items():
        if holds:
            raise Unfit(reason)
    why = find_context_use(tool.fn, server)
    if why is not None:
        raise Unfit(why)


def _argument_reader(tool: Any) -> Validate:
    """FastMCP validates by calling the function through pydantic; this validator calls a function that returns its
    arguments."""

    def collect(**arguments: Any) -> dict[str, Any]:
        return arguments

    wrapped = import_module("fastmcp.tools.function_tool")._wrap_body_errors(tool.fn)
    for name in ("__signature__", "__annotations__", "__name__", "__doc__", "__module__", "__qualname__"):
        setattr(collect, name, getattr(wrapped, name))
    adapter = import_module("fastmcp.utilities.types").get_cached_typeadapter(collect)

    def slowly(raw: bytes) -> dict[str, Any]:
        try:
            arguments: dict[str, Any] = adapter.validate_python(pydantic_core.from_json(raw))
        except ValidationError as error:
            logging.getLogger("fastmcp.server.server").warning("Invalid arguments for tool %r", tool.name)
            raise Rejected(str(error)) from error
        return arguments

    if not _reads_alike(adapter.core_schema):
        return slowly
    validate = adapter.validator.validate_json

    def fast_path(raw: bytes) -> dict[str, Any]:
        try:
            arguments: dict[str, Any] = validate(raw)
        except ValidationError:
            return slowly(raw)
        return arguments

    return fast_path


def _reads_alike(schema: Any) -> bool:
    known: dict[str, Any] = {}
    if schema["type"] == "definitions":
        known = {one["ref"]: one for one in schema["definitions"]}
        schema = schema["schema"]
    return bool(schema["type"] == "call" and reads_alike(schema["arguments_schema"], known))


_WRAPPED = b'},"_meta":{"fastmcp":{"wrap_result":true}}}'


def _result_writer(tool: Any, checker: Callable[[Any], str | None] | None) -> Callable[[Any], bytes]:
    schema = tool.output_schema or {}
    # The result that the conversion below would give for a `str`, written directly.
    is_text = tool.return_type is str and schema.get("x-fastmcp-wrap-result") is True

    def finish(value: Any) -> bytes:
        if is_text and type(value) is str:
            text = pydantic_core.to_json(value)
            head = b'{"content":[{"type":"text","text":' + text + b'}],"structuredContent":{"result":'
            return head + text + _WRAPPED
        if inspect.isawaitable(value):
            raise TypeError("a plain function returned something to wait for")
        result = tool.convert_result(value)
        if hasattr(result, "input_required"):
            raise RuntimeError("a tool without a context asked for another round")
        made = result.to_mcp_result()
        if hasattr(made, "model_dump"):
            dumped = made.model_dump(by_alias=True, mode="json", exclude_none=True)
            return pydantic_core.to_json(dumped, inf_nan_mode="null")
        content, structured = made if isinstance(made, tuple) else (made, None)
        if checker is not None:
            mistake = checker(structured)
            if mistake is not None:
                raise Rejected(mistake)
        dumped = {"content": [block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in content]}
        if structured is not None:
            dumped["structuredContent"] = pydantic_core.to_jsonable_python(structured)
        return pydantic_core.to_json(dumped, inf_nan_mode="null")

    return finish


class FailureAnswers:
    """Answers to failures with FastMCP's messages, classified as ``FastMCP.call_tool`` does."""

    def __init__(self, tool: Any, server: Any) -> None:
        self._name, self._server = tool.name, server
        self._own = import_module("fastmcp.exceptions")
        self._logger = logging.getLogger("fastmcp.server.server")

    def fail(self, error: BaseException) -> Answer:
        if isinstance(error, Rejected):
            return failure_json(str(error))
        if isinstance(error, (self._own.NotFoundError, self._own.DisabledError)):
            return failure_json(f"Unknown tool: {self._name!r}")
        if isinstance(error, self._own.FastMCPError):
            self._logger.log(getattr(error, "log_level", logging.ERROR), "Error calling tool %r", self._name)
            return failure_json(str(error))
        code = getattr(getattr(error, "error", None), "code", None)
        if code == -32021:
            return protocol_error_answer(error)
        if isinstance(error, ValidationError) and not hasattr(
            sys.modules.get("fastmcp.utilities.exceptions"), "is_timeout_error"
        ):
            # FastMCP 3 sends the message of a validation error that the function raised.
            return failure_json(str(error))
        status = getattr(getattr(error, "response", None), "status_code", None)
        self._logger.error("Error calling tool %r", self._name, exc_info=None if status else error)
        if status == 429:
            return failure_json("Rate limited by upstream API, please retry later")
        if _timed_out(error):
            return failure_json("Upstream request timed out, please retry")
        if self._server._mask_error_details:
            return failure_json(f"Error calling tool {self._name!r}")
        return failure_json(f"Error calling tool {self._name!r}: {error}")


def _timed_out(error: BaseException) -> bool:
    """Whether an exception is an HTTP library's time-out."""
    return any(
        base.__name__ == "TimeoutException" and base.__module__.partition(".")[0] in ("httpx", "httpx2")
        for base in type(error).__mro__
    )
