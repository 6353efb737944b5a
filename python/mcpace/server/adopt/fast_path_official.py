"""The fast path for tools of the official SDK, 1.x and 2.x, which the runtime calls itself.

Design constraint: no guesses. A tool qualifies if its class is the SDK's own, nothing intercepts the call, and the
function takes only its arguments. The SDK's model, schema and conversion are used; the fast path skips the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal

import pydantic_core
from pydantic import ValidationError

from mcpace.server.adopt.fast_path import Answer, Rejected, Unfit, checker_of, failure_json, protocol_error_answer
from mcpace.server.adopt.json_arguments import model_reader
from mcpace.server.registration.context_use_scan import find_context_use


def handler(tool: Any, server: Any) -> Any:
    """The tool as a ``_core.Handler``. Raises :class:`Unfit`."""
    from mcpace import _core

    _check_tool(tool, server)
    metadata = tool.fn_metadata
    is_2 = hasattr(metadata, "validate_arguments")
    words = FailureAnswers2(tool) if is_2 else FailureAnswers1(tool)
    return _core.Handler(
        tool.fn,
        kind="async" if tool.is_async else "sync",
        validate=model_reader(metadata.arg_model, _plain_reader(metadata, words)),
        output=_output_kind(metadata),
        finish=_finish_2(metadata) if is_2 else _finish_1(metadata),
        fail=words.fail,
    )


def _check_tool(tool: Any, server: Any) -> None:
    if type(tool).__module__ not in ("mcp.server.mcpserver.tools.base", "mcp.server.fastmcp.tools.base"):
        raise Unfit("a tool class of its own")
    if tool.context_kwarg is not None:
        raise Unfit("it takes a context")
    if getattr(tool, "resolved_params", None):
        raise Unfit("its parameters are resolved")
    why = find_context_use(tool.fn, server)
    if why is not None:
        raise Unfit(why)


def _plain_reader(metadata: Any, words: FailureAnswers1 | FailureAnswers2) -> Callable[[bytes], dict[str, Any]]:
    """The SDK's own conversion of a call's JSON to keyword arguments."""

    def validate(raw: bytes) -> dict[str, Any]:
        try:
            arguments = metadata.pre_parse_json(pydantic_core.from_json(raw))
            checked: dict[str, Any] = metadata.arg_model.model_validate(arguments).model_dump_one_level()
        except Exception as error:
            raise words.rejected(error) from error
        return checked

    return validate


def _output_kind(metadata: Any) -> Literal["text", "wrapped-text", "custom"]:
    """How the runtime writes a value that is a ``str``; ``finish`` writes all others."""
    if metadata.output_schema is None:
        return "text"
    fields = getattr(metadata.output_model, "model_fields", {})
    if metadata.wrap_output and list(fields) == ["result"]:
        field = fields["result"]
        if field.annotation is str and not field.metadata:
            return "wrapped-text"
    return "custom"


def _finish_2(metadata: Any) -> Callable[[Any], bytes]:
    def finish(value: Any) -> bytes:
        result = metadata.convert_result(value)
        if not hasattr(result, "is_error"):
            raise RuntimeError("a tool without a context asked for another round")
        dumped = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return pydantic_core.to_json(dumped, inf_nan_mode="null")

    return finish


def _finish_1(metadata: Any) -> Callable[[Any], bytes]:
    checker = checker_of(metadata.output_schema)

    def finish(value: Any) -> bytes:
        converted = metadata.convert_result(value)
        if hasattr(converted, "isError"):
            dumped = converted.model_dump(by_alias=True, mode="json", exclude_none=True)
            return pydantic_core.to_json(dumped, inf_nan_mode="null")
        content, structured = converted if isinstance(converted, tuple) else (converted, None)
        dumped = {"content": [block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in content]}
        mistake = None if checker is None else checker(structured)
        if mistake is not None:
            raise Rejected(mistake)
        if structured is not None:
            dumped["structuredContent"] = structured
        return pydantic_core.to_json(dumped, inf_nan_mode="null")

    return finish


class FailureAnswers1:
    """Answers to failures with the messages of mcp 1.x, which sends the text of every exception."""

    def __init__(self, tool: Any) -> None:
        self._name = tool.name
        self._logger = logging.getLogger("mcp.server.fastmcp.server")

    def rejected(self, error: Exception) -> Rejected:
        return Rejected(f"Error executing tool {self._name}: {error}")

    def fail(self, error: BaseException) -> Answer:
        if isinstance(error, Rejected):
            return failure_json(str(error))
        if type(error).__name__ == "UrlElicitationRequiredError":
            return protocol_error_answer(error)
        if not isinstance(error, Exception):
            # The SDK sends clients nothing about `sys.exit()`, Ctrl-C or a cancellation.
            self._logger.error("Tool %r raised an unexpected exception", self._name, exc_info=error)
            return failure_json(f"Error executing tool {self._name}")
        return failure_json(f"Error executing tool {self._name}: {error}")


class FailureAnswers2:
    """Answers to failures with the messages of mcp 2.x, which sends the text of deliberate errors and logs crashes."""

    def __init__(self, tool: Any) -> None:
        errors = import_module("mcp.server.mcpserver.exceptions")
        self._name = tool.name
        self._protocol: type[Exception] = import_module("mcp.shared.exceptions").MCPError
        self._foreseen = (errors.ToolError, errors.ResourceError)
        self._crashed = (errors.UnexpectedToolError, errors.UnexpectedResourceError)
        self._logger = logging.getLogger("mcp.server.mcpserver.server")

    def rejected(self, error: Exception) -> Exception:
        if isinstance(error, ValidationError):
            fields = sorted({".".join(str(part) for part in one["loc"]) for one in error.errors()})
            self._logger.info("Tool %r rejected arguments: %r", self._name, fields)
            return Rejected(f"Error executing tool {self._name}: {error}")
        return error

    def fail(self, error: BaseException) -> Answer:
        if isinstance(error, Rejected):
            return failure_json(str(error))
        if isinstance(error, self._protocol):
            return protocol_error_answer(error)
        told = f"Error executing tool {self._name}"
        if isinstance(error, self._crashed):
            told = f"{told}: {error}"
        elif isinstance(error, self._foreseen):
            told = f"{told}: {error}"
            self._logger.info("Tool %r failed: %r", self._name, told)
            return failure_json(told)
        self._logger.error("Tool %r raised an unexpected exception", self._name, exc_info=error)
        return failure_json(told)
