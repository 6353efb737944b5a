"""FastMCP's resources and resource templates: complete results, several contents, files, texts, URLs.

Text and bytes are sent unchanged, other serializable values as JSON.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel, Field, field_validator

from mcpace.fastmcp.authorization import Component, component_guards
from mcpace.fastmcp.content import text_of
from mcpace.fastmcp.context import current
from mcpace.fastmcp.dependencies import inject_dependencies
from mcpace.fastmcp.errors import protocol_error
from mcpace.fastmcp.prompts import public_meta
from mcpace.fastmcp.schemas import CallArguments, arguments_of, inline_references
from mcpace.fastmcp.tools import meta_with_tags
from mcpace.server.calls.context import ReadResourceContents
from mcpace.server.calls.invocation import call_function
from mcpace.server.errors import InputRequired, RegistrationError, UnsupportedOption, is_protocol_error, logger
from mcpace.server.registration import resources as plain
from mcpace.server.registration.path_security import DEFAULT_RESOURCE_SECURITY, ResourceSecurity
from mcpace.server.registration.signature import is_async, name_of, signature_of
from mcpace.server.registration.uri_template import UriTemplate, Values
from mcpace.types import InputRequiredResult, is_kind, wire


class ResourceContent(BaseModel):
    """One content of a result: text, bytes, or a value that is sent as JSON."""

    content: str | bytes
    mime_type: str | None = None
    meta: dict[str, Any] | None = None

    def __init__(self, content: Any, mime_type: str | None = None, meta: dict[str, Any] | None = None) -> None:
        is_text, is_binary = isinstance(content, str), isinstance(content, bytes)
        kind = "text/plain" if is_text else "application/octet-stream" if is_binary else "application/json"
        shown = content if isinstance(content, str | bytes) else text_of(content)
        super().__init__(content=shown, mime_type=mime_type or kind, meta=meta)


class ResourceResult(BaseModel):
    """The result of reading a resource: several contents, metadata."""

    contents: list[ResourceContent]
    meta: dict[str, Any] | None = None

    def __init__(self, contents: Any, meta: dict[str, Any] | None = None) -> None:
        super().__init__(contents=_contents(contents), meta=meta)


class Resource(plain.Resource):
    """Base class of resources. A subclass implements ``read``, which returns text, bytes or a ``ResourceResult``."""

    tags: frozenset[str] = frozenset()
    auth: Any = Field(default=None, exclude=True, repr=False)

    @field_validator("uri", mode="before")
    @classmethod
    def _uri_as_text(cls, uri: Any) -> str:
        return str(uri)

    def model_post_init(self, _: Any) -> None:
        """Creates the guards for ``auth``."""
        if self.auth is not None:
            self.guards = component_guards(
                self.auth, Component(self.name or self.uri, self.tags, self.meta, uri=self.uri)
            )

    @classmethod
    def from_function(cls, fn: Callable[..., Any], uri: Any, **options: Any) -> FunctionResource:
        """A resource of a function without parameters."""
        return FunctionResource.of(fn, str(uri), **options)

    async def read(self) -> Any:
        """The contents."""
        raise NotImplementedError("Subclasses must implement read()")

    async def contents(self) -> plain.Contents:
        """The contents, as a client gets them. Raises ``MCPError`` where reading fails."""
        try:
            return contents_of(await self.read(), self.mime_type, self.meta)
        except Exception as error:
            raise reading_error(self.uri, error) from error

    def listed(self) -> dict[str, Any]:
        """The entry in lists, with the names of the wire format."""
        return _list_entry(self, {"uri": self.uri, "name": self.name or self.uri})


class FunctionResource(Resource):
    """A resource whose content is the value of a function without parameters, which is called for each reading."""

    fn: Callable[[], Any] = Field(exclude=True)

    @classmethod
    def from_function(cls, fn: Callable[..., Any], uri: Any, **options: Any) -> FunctionResource:
        """A resource of a function without parameters, with the options of ``FastMCP.resource``."""
        return cls.of(fn, str(uri), **options)

    @classmethod
    def of(cls, function: Callable[..., Any], uri: str, **options: Any) -> FunctionResource:
        """A resource of a function. Raises ``RegistrationError`` where it has parameters."""
        fn = inject_dependencies(function)
        plain.check_static(fn, uri)
        name, description = options.pop("name", None), options.pop("description", None)
        return cls(
            uri=uri,
            name=name or name_of(function),
            description=inspect.getdoc(function) if description is None else description,
            mime_type=options.pop("mime_type", None) or "text/plain",
            fn=fn,
            tags=frozenset(options.pop("tags", None) or ()),
            **options,
        )

    async def read(self) -> Any:
        """Calls the function."""
        value = await call_function(self.fn, is_async(self.fn), {})
        return await value.read() if is_kind(type(value), plain.Resource, "Resource") else value


class TextResource(Resource):
    """A resource with a fixed text."""

    text: str

    async def read(self) -> Any:
        """The text."""
        return self.text


class BinaryResource(Resource):
    """A resource with fixed bytes."""

    data: bytes

    async def read(self) -> Any:
        """The bytes."""
        return self.data


class FileResource(Resource):
    """A resource whose content is a file: text for a media type ``text/…``, otherwise bytes; ``is_binary`` overrides
    this."""

    path: plain.AbsolutePath
    is_binary: bool | None = None
    encoding: str | None = "utf-8"

    async def read(self) -> Any:
        """Reads the file, in a thread."""
        is_binary = not self.mime_type.startswith("text/") if self.is_binary is None else self.is_binary
        if is_binary:
            return await call_function(self.path.read_bytes, False, {})
        return await call_function(self.path.read_text, False, {"encoding": self.encoding})


class HttpResource(plain.HttpResource, Resource):
    """A resource whose content is the response of a URL, as text."""


class DirectoryResource(plain.DirectoryResource, Resource):
    """A resource whose content is the names of a folder's files, as JSON."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionTemplate(plain.ResourceTemplate):
    """A resource template that calls a function with the variables of its URI."""

    tags: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        uri_template: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        icons: Sequence[Any] | None = None,
        annotations: Any = None,
        tags: Iterable[str] | None = None,
        meta: dict[str, Any] | None = None,
        auth: Any = None,
        security: ResourceSecurity | None = DEFAULT_RESOURCE_SECURITY,
    ) -> FunctionTemplate:
        """A template of a function, whose parameters are variables of the template or have defaults."""
        fn = inject_dependencies(function)
        written = rfc6570_template(uri_template)
        template = UriTemplate.parse(written)
        _check_variables(fn, template, uri_template)
        called = name or name_of(function)
        labels = frozenset(tags or ())
        return cls(
            fn=fn,
            uri_template=written,
            name=called,
            title=title,
            description=(inspect.getdoc(function) or "") if description is None else description,
            mime_type=mime_type or "text/plain",
            arguments=arguments_of(fn, {}),
            template=template,
            is_async=is_async(fn),
            context_kwarg=None,
            security=ResourceSecurity(False, False, False) if security is None else security,
            icons=icons,
            annotations=annotations,
            meta=meta,
            guards=component_guards(auth, Component(called, labels, meta, uri_template=written)),
            tags=labels,
        )

    @classmethod
    def from_function(cls, fn: Callable[..., Any], uri_template: str, **options: Any) -> FunctionTemplate:  # type: ignore[override]
        """A template of a function, with the options of ``FastMCP.resource``."""
        return cls.of(fn, uri_template, **options)

    @property
    def parameters(self) -> dict[str, Any]:
        """The variables' JSON Schema."""
        return inline_references(self.arguments.schema) or {}

    async def read(self, uri: str, values: Values, context: Any) -> Any:
        """Calls the function with the values of the variables. Raises ``MCPError`` where it fails."""
        try:
            value = await call_function(self.fn, self.is_async, self.keywords(values))
            if is_kind(type(value), InputRequiredResult, "InputRequiredResult"):
                return InputRequiredResult.model_validate(value)
            if is_kind(type(value), plain.Resource, "Resource"):
                value = await value.read()
            return contents_of(value, self.mime_type, self.meta)
        except Exception as error:
            raise reading_error(uri, error) from error

    def keywords(self, values: Values) -> dict[str, Any]:
        """The function's arguments: the variables' values, converted to the parameters' types."""
        return cast("CallArguments", self.arguments).validate(
            {name: _convert_variable(value, self.fn, name) for name, value in values.items()}
        )

    def listed(self) -> dict[str, Any]:
        """The entry in lists, with the names of the wire format."""
        return _list_entry(self, {"uriTemplate": self.uri_template, "name": self.name})


class ForeignResource:
    """A resource of FastMCP's own class, such as ``fastmcp.resources.FileResource``."""

    def __init__(self, resource: Any) -> None:
        if hasattr(resource, "fn"):
            raise RegistrationError(
                f"Resource {str(resource.uri)!r} is fastmcp's {type(resource).__name__}, whose function runs in "
                "FastMCP's own context. Make it with mcpace.fastmcp, or register the function with @mcp.resource(uri)"
            )
        if resource.version is not None or resource.auth is not None:
            raise UnsupportedOption(
                f"Resource {str(resource.uri)!r} is fastmcp's {type(resource).__name__} with version= or auth=: make "
                f"it with {type(resource).__name__} of mcpace.fastmcp"
            )
        self._resource = resource
        self.uri = str(resource.uri)
        self.name = resource.name
        self.mime_type = resource.mime_type
        self.meta = resource.meta

    def moved(self, uri: str) -> ForeignResource:
        """The resource at another URI."""
        other = ForeignResource(self._resource)
        other.uri = uri
        return other

    async def read(self) -> Any:
        """The contents, as the resource returns them."""
        return await self._resource.read()

    async def contents(self) -> plain.Contents:
        """The contents, as a client gets them. Raises ``MCPError`` where reading fails."""
        try:
            return contents_of(await self._resource.read(), self.mime_type, self.meta)
        except Exception as error:
            raise reading_error(self.uri, error) from error

    def listed(self) -> dict[str, Any]:
        """The entry in lists, with the names of the wire format."""
        return _list_entry(self._resource, {"uri": self.uri, "name": self.name})


def contents_of(value: Any, mime_type: str | None, meta: dict[str, Any] | None) -> plain.Contents:
    """A function's value as contents."""
    if is_kind(type(value), InputRequiredResult, "InputRequiredResult"):
        raise InputRequired(InputRequiredResult.model_validate(value))
    if is_kind(type(value), ResourceResult, "ResourceResult"):
        return plain.Contents((_read(one, one.meta) for one in value.contents), value.meta)
    own = public_meta(meta)
    if isinstance(value, str | bytes):
        return plain.Contents([ReadResourceContents(value, mime_type, own)])
    if isinstance(value, list) and value and is_kind(type(value[0]), ResourceContent, "ResourceContent"):
        merged = [_read(one, {**(own or {}), **(one.meta or {})} or None) for one in _contents(value)]
        return plain.Contents(merged)
    if value is None or isinstance(value, dict | list | tuple | int | float | bool):
        return plain.Contents([ReadResourceContents(json.dumps(value), mime_type or "application/json", own)])
    raise TypeError(f"contents must be str, bytes, or list[ResourceContent], got {type(value).__name__}")


def reading_error(uri: str, error: Exception) -> Exception:
    """The exception for a failed reading."""
    if isinstance(error, InputRequired) or is_protocol_error(error) or hasattr(error, "_asked"):
        return error
    logger.error("Error reading resource %r", uri, exc_info=error)
    context = current.get(None)
    return protocol_error(
        error, f"Error reading resource {uri!r}", context is not None and context.fastmcp.masks_errors
    )


def rfc6570_template(uri_template: str) -> str:
    """Rewrites FastMCP's ``{path*}`` as RFC 6570's ``{+path}``."""
    return re.sub(r"\{(\w+)\*\}", r"{+\1}", uri_template)


def _read(content: Any, meta: dict[str, Any] | None) -> ReadResourceContents:
    return ReadResourceContents(content.content, content.mime_type, meta)


def _contents(value: Any) -> list[ResourceContent]:
    if isinstance(value, str | bytes):
        return [ResourceContent(value)]
    if isinstance(value, list) and all(is_kind(type(one), ResourceContent, "ResourceContent") for one in value):
        own = (one if isinstance(one, ResourceContent) else _own_content(one) for one in value)
        return list(own)
    if value is None or isinstance(value, dict | tuple | int | float | bool):
        return [ResourceContent(json.dumps(value), "application/json")]
    if isinstance(value, list):
        odd = next(one for one in value if not is_kind(type(one), ResourceContent, "ResourceContent"))
        raise TypeError(f"contents must be ResourceContent, got {type(odd).__name__}: write ResourceContent({odd!r})")
    raise TypeError(f"contents must be str, bytes, or list[ResourceContent], got {type(value).__name__}")


def _own_content(content: Any) -> ResourceContent:
    return ResourceContent(content.content, content.mime_type, content.meta)


def _list_entry(entry: Any, named: dict[str, Any]) -> dict[str, Any]:
    told = {
        **named,
        "title": entry.title,
        "description": entry.description or None,
        "mimeType": entry.mime_type,
        "icons": wire(entry.icons),
        "annotations": wire(entry.annotations),
        "_meta": meta_with_tags(entry.meta, entry.tags),
    }
    return {key: value for key, value in told.items() if value is not None}


def _check_variables(fn: Callable[..., Any], template: UriTemplate, written: str) -> None:
    parameters = signature_of(fn).parameters
    variables, queried = set(template.variable_names), set(template.query_variable_names)
    required = {name for name, one in parameters.items() if one.default is one.empty}
    if queried & required:
        raise RegistrationError(
            f"Query parameters {queried & required} must be optional function parameters with default values"
        )
    if not required <= variables:
        raise RegistrationError(
            f"Required function arguments {required} must be a subset of the URI path parameters {variables}"
        )
    if not variables <= set(parameters):
        raise RegistrationError(
            f"URI parameters {variables} of {written!r} must be a subset of the function arguments: {set(parameters)}"
        )


def _convert_variable(value: Any, fn: Callable[..., Any], name: str) -> Any:
    """A variable's text, converted to a number or a truth value where the parameter is one."""
    annotation = signature_of(fn).parameters[name].annotation if isinstance(value, str) else None
    if annotation in (int, float):
        return annotation(value)
    if annotation is bool:
        if value.lower() in ("true", "1", "yes", "false", "0", "no"):
            return value.lower() in ("true", "1", "yes")
        raise ValueError(f"Invalid boolean value for {name}: {value!r}")
    return value
