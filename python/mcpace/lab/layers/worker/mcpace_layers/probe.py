"""What every probe is, and which one an object belongs to.

A probe knows one SDK. It names the functions of the SDK's that it calls, and where one isn't there it says so in one
sentence (:func:`reached`) and leaves that layer out.
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

from mcpace_layers.layer import Awaited, Check, Layer, Loop, Plain
from mcpace_layers.problem import USAGE, Problem, failed, missing, wrong_arguments

DIRECT, HANDLER, IN_PROCESS, SOCKET = "direct", "handler", "in-process", "socket"


class Asked(NamedTuple):
    """What is to be measured."""

    server: Any
    tool: str
    arguments: dict[str, Any]
    loop: Loop


class Served(NamedTuple):
    """A server that listens."""

    url: str
    by: str
    """What serves it, in words."""
    wait: Callable[[], None]
    """Serves until the process ends."""


class Probe(ABC):
    """One SDK. A layer that can't be had raises :class:`Problem`, whose sentence stands in its place."""

    sdk = ""
    """As the adapters are named, where there is one."""
    package = ""
    """The distribution whose version is told."""
    tells = False
    """Whether the handler's time is what a served server tells."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    @classmethod
    def version(cls) -> str:
        """Of the SDK, as installed."""
        try:
            return version(cls.package)
        except PackageNotFoundError:
            return ""

    @abstractmethod
    def tools(self) -> list[str]:
        """Names of all tools."""

    @abstractmethod
    def direct(self) -> Layer:
        """The author's function, its arguments validated beforehand."""

    @abstractmethod
    def handler(self) -> Layer:
        """Dispatch without a transport."""

    @abstractmethod
    def in_process(self) -> Layer:
        """A client in this process, no socket."""

    @abstractmethod
    def serve(self) -> Served:
        """Begins to listen on a free port of loopback."""

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Around what names things of the SDK's."""
        try:
            yield
        except (AttributeError, ImportError) as error:
            raise missing(self.sdk, self.version(), error) from error

    def checks(self, layer: str) -> Check:
        """What looks at a layer's results, where they are of the official SDK's types."""

        def check(result: Any) -> None:
            if (why := official_failure(result)) is not None:
                raise failed(self.asked.tool, layer, why)

        return check

    def call_directly(self, function: Callable[..., Any], keywords: Mapping[str, Any]) -> Layer:
        """The layer of a plain or a coroutine function; called once here, so that what it raises is told apart."""
        call = partial(function, **keywords)
        is_async = is_coroutine_function(function)
        try:
            result = self.asked.loop.run(call()) if is_async else call()
        except Exception as error:
            raise failed(self.asked.tool, DIRECT, error) from error
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            raise Problem(USAGE, f"the tool {self.asked.tool!r} is a generator: it has no direct call to compare with")
        includes = "the tool's own function, called with arguments that were validated before"
        if is_async:
            return Awaited(DIRECT, includes, accept, self.asked.loop, call)
        return Plain(DIRECT, includes, accept, call)


def accept(_: Any) -> None:
    """Any result will do."""


def typed(function: Callable[..., Any], arguments: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Arguments as a function's annotations have them, by pydantic, which these SDKs bring."""
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
    """Also of a partial, and of an object that is called."""
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def official_failure(result: Any) -> str | None:
    """What a result of the official SDK's types failed of."""
    if not (getattr(result, "isError", None) or getattr(result, "is_error", None)):
        return None
    return str(getattr((getattr(result, "content", None) or [None])[0], "text", None) or "the result has isError")


def find(server: Any) -> type[Probe]:
    """The probe for a server object. Raises :class:`Problem` where there is none."""
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
"""Where a server's class, or one it derives from, was defined; the probe's file; its class."""
