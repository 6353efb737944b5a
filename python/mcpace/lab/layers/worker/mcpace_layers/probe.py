"""Base class of probes, and the selection of the probe for a server object.

A probe knows one SDK. Its module lists the SDK's functions that it calls. Where a function is missing, the layer is
left out with a message (:meth:`Probe.sdk_errors`).
"""

from __future__ import annotations

import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from mcpace_layers.layer import Check, CoroutineLayer, FunctionLayer, Layer, Loop
from mcpace_layers.problem import USAGE, Problem, missing_function, tool_failure, wrong_arguments

DIRECT, HANDLER, IN_PROCESS, SOCKET = "direct", "handler", "in-process", "socket"


class CallTarget(NamedTuple):
    """The server, tool and arguments to measure."""

    server: Any
    tool: str
    arguments: dict[str, Any]
    loop: Loop


class Served(NamedTuple):
    """A listening server."""

    url: str
    by: str
    """Description of the program that serves it."""
    wait: Callable[[], None]
    """Serves until the process ends."""


class Probe(ABC):
    """Probe of one SDK. For a layer that can't be measured, its method raises :class:`Problem` with the reason."""

    sdk = ""
    """Name of the SDK's adapter, where there is one."""
    package = ""
    """Distribution whose version is reported."""
    reports_handler = False
    """Whether a running server reports the handler's time."""

    def __init__(self, target: CallTarget) -> None:
        self.target = target

    @classmethod
    def version(cls) -> str:
        """Installed version of the SDK; empty where it isn't installed."""
        try:
            return version(cls.package)
        except PackageNotFoundError:
            return ""

    @abstractmethod
    def tools(self) -> list[str]:
        """Names of all tools."""

    @abstractmethod
    def direct(self) -> Layer:
        """Layer of the tool's function, with arguments validated beforehand."""

    @abstractmethod
    def handler(self) -> Layer:
        """Layer of the SDK's dispatch, without a transport."""

    @abstractmethod
    def in_process(self) -> Layer:
        """Layer of a client in this process, without a socket."""

    @abstractmethod
    def serve(self) -> Served:
        """Starts the server on a free port of loopback."""

    @contextmanager
    def sdk_errors(self) -> Iterator[None]:
        """Turns a missing attribute or module of the SDK into a :class:`Problem`."""
        try:
            yield
        except (AttributeError, ImportError) as error:
            raise missing_function(self.sdk, self.version(), error) from error

    def result_check(self, layer: str) -> Check:
        """Check for a layer whose results have the official SDK's types."""

        def check(result: Any) -> None:
            if (why := official_failure(result)) is not None:
                raise tool_failure(self.target.tool, layer, why)

        return check

    def call_directly(self, function: Callable[..., Any], keywords: Mapping[str, Any]) -> Layer:
        """Layer of a plain or coroutine function. Calls it once here, so that its own exceptions are recognized."""
        call = partial(function, **keywords)
        is_async = is_coroutine_function(function)
        try:
            result = self.target.loop.run(call()) if is_async else call()
        except Exception as error:
            raise tool_failure(self.target.tool, DIRECT, error) from error
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            raise Problem(USAGE, f"the tool {self.target.tool!r} is a generator: it has no direct call to compare with")
        includes = "the tool's own function, called with arguments that were validated before"
        if is_async:
            return CoroutineLayer(DIRECT, includes, accept, self.target.loop, call)
        return FunctionLayer(DIRECT, includes, accept, call)


def accept(_: Any) -> None:
    """Check that accepts any result."""


def convert_arguments(function: Callable[..., Any], arguments: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Converts arguments to the types of a function's annotations, with the SDK's own pydantic."""
    pydantic = importlib.import_module("pydantic")
    try:
        hints = inspect.get_annotations(function, eval_str=True)
    except Exception:
        hints = {}
    keywords = {}
    for key, value in arguments.items():
        try:
            keywords[key] = pydantic.TypeAdapter(hints[key]).validate_python(value) if key in hints else value
        except pydantic.ValidationError as error:
            raise wrong_arguments(name, f"{key}: {error.errors()[0]['msg']}") from error
    try:
        inspect.signature(function).bind(**keywords)
    except TypeError as error:
        raise wrong_arguments(name, str(error)) from error
    return keywords


def is_coroutine_function(function: Any) -> bool:
    """Whether a function, a partial or a callable object is a coroutine function."""
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def official_failure(result: Any) -> str | None:
    """Reason of a failed result of the official SDK's types; ``None`` for a successful one."""
    if not (getattr(result, "isError", None) or getattr(result, "is_error", None)):
        return None
    return str(getattr((getattr(result, "content", None) or [None])[0], "text", None) or "the result has isError")


def find(server: Any) -> type[Probe]:
    """Selects the probe for a server object. Raises :class:`Problem` for an unknown class."""
    modules = [base.__module__ for base in type(server).__mro__]
    for prefix, place, name in PROBES:
        if any(module == prefix or module.startswith(f"{prefix}.") for module in modules):
            probe: type[Probe] = getattr(importlib.import_module(f"mcpace_layers.{place}"), name)
            return probe
    kind = type(server)
    raise Problem(
        USAGE,
        f"a {kind.__module__}.{kind.__qualname__} is no server whose layers are known: MCPServer and FastMCP of "
        "mcpace, of the official SDK, FastMCP's own, or djangorestframework-mcp-server's MCPServer",
    )


PROBES = (
    ("mcpace.django", "of_mcpace_django", "McpaceDjango"),
    ("mcpace.server", "of_mcpace", "Mcpace"),
    ("fastmcp.server", "of_fastmcp", "FastMcp"),
    ("mcp.server.fastmcp", "of_official_1", "Official1"),
    ("mcp.server.mcpserver", "of_official_2", "Official2"),
    ("rest_framework_mcp", "of_drf_mcp", "DrfMcp"),
)
"""Module prefix of a server's class or of one of its bases; module of the probe; name of the probe's class."""
