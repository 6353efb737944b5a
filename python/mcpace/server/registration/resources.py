"""Resources (a text, bytes, a file, or a function's value), and templates that define families of them.

A function's value becomes a resource's contents as in the official SDK: text and bytes unchanged, any other value as
JSON, indented by two.

Design constraint: nothing is read before a client asks.
"""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SkipValidation, ValidationInfo, field_validator
from pydantic_core import to_json

from mcpace.server.auth.guards import UNGUARDED, Guards
from mcpace.server.calls.content import text_of
from mcpace.server.calls.context import ReadResourceContents
from mcpace.server.calls.invocation import call_function
from mcpace.server.errors import (
    InputRequired,
    RegistrationError,
    ResourceNotFoundError,
    UnexpectedResourceError,
    resource_exception,
)
from mcpace.server.registration.dependency_providers import PROVIDERS_CONTEXT
from mcpace.server.registration.injection import find_context
from mcpace.server.registration.markers import refuse_markers
from mcpace.server.registration.path_security import DEFAULT_RESOURCE_SECURITY, ResourceSecurity
from mcpace.server.registration.signature import Arguments, arguments_of, is_async, name_of, signature_of
from mcpace.server.registration.uri_template import UriTemplate, Values
from mcpace.types import Annotations, Icon, InputRequiredResult, is_kind, wire

_TEXTUAL = frozenset({"application/json", "application/xml"})


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("Path must be absolute")
    return path


AbsolutePath = Annotated[Path, AfterValidator(_absolute)]


FETCH_SILENCE_S = 30
FETCH_LIMIT = 16 << 20
"""Limit of a URL's response, in bytes."""


class Resource(BaseModel, ABC):
    """Base of resources. Subclasses return the contents from ``read``."""

    model_config = ConfigDict(validate_default=True, extra="forbid", defer_build=True)

    uri: str
    name: str | None = None
    """The name; by default the URI."""
    title: str | None = None
    description: str | None = None
    mime_type: str = "text/plain"
    icons: list[Icon] | None = None
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None
    guards: SkipValidation[Guards] = Field(default=UNGUARDED, exclude=True, repr=False)
    """The guards of the resource."""

    @field_validator("name", mode="before")
    @classmethod
    def _named_after_uri(cls, name: str | None, info: ValidationInfo) -> str:
        if not name and "uri" not in info.data:
            raise ValueError("Either name or uri must be provided")
        return name or str(info.data["uri"])

    @abstractmethod
    async def read(self) -> str | bytes | Contents:
        """The contents."""


class TextResource(Resource):
    """A text."""

    text: str

    async def read(self) -> str:
        """The text."""
        return self.text


class BinaryResource(Resource):
    """Bytes."""

    data: bytes

    async def read(self) -> bytes:
        """The bytes."""
        return self.data


class FunctionResource(Resource):
    """The value of a function without parameters, which is called at each reading."""

    fn: Callable[[], Any] = Field(exclude=True)

    async def read(self) -> str | bytes | Contents:
        """Calls the function."""
        return await contents_of(await call_function(self.fn, is_async(self.fn), {}))

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        uri: str,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        icons: Sequence[Any] | None = None,
        annotations: Any = None,
        meta: dict[str, Any] | None = None,
        guards: Guards = UNGUARDED,
    ) -> FunctionResource:
        """A resource of a function."""
        return cls(
            uri=uri,
            name=_function_name(fn, name),
            title=title,
            description=description or fn.__doc__ or "",
            mime_type=mime_type or "text/plain",
            fn=fn,
            icons=None if icons is None else list(icons),
            annotations=annotations,
            meta=meta,
            guards=guards,
        )


class FileResource(Resource):
    """A file. Textual media types are decoded (UTF-8, or the type's ``charset``), others are sent as bytes."""

    path: AbsolutePath
    encoding: str | None = Field(default_factory=lambda data: _encoding(data.get("mime_type", "")))
    """The encoding of a text; ``None`` for bytes."""

    @field_validator("encoding")
    @classmethod
    def _known_variables(cls, encoding: str | None) -> str | None:
        if encoding is not None:
            try:
                b"x".decode(encoding)
            except LookupError as error:
                raise ValueError(str(error)) from error
            except UnicodeError:
                pass  # A text encoding that can't decode this byte.
        return encoding

    async def read(self) -> str | bytes:
        """Reads the file, in a thread."""
        if self.encoding is None:
            contents: bytes = await call_function(self.path.read_bytes, False, {})
            return contents
        text: str = await call_function(self.path.read_text, False, {"encoding": self.encoding})
        return text


class HttpResource(Resource):
    """The response of a URL, as text."""

    url: str
    mime_type: str = "application/json"

    async def read(self) -> str | bytes:
        """Fetches the URL in a thread. Fails after half a minute without data, and beyond 16 MiB."""
        text: str = await call_function(_fetch_url, False, {"url": self.url})
        return text


class DirectoryResource(Resource):
    """The names of a folder's files, as JSON."""

    path: AbsolutePath
    recursive: bool = False
    pattern: str | None = None
    mime_type: str = "application/json"

    def list_files(self) -> list[Path]:
        """The files that match the pattern."""
        if not self.path.is_dir():
            raise NotADirectoryError(f"Not a directory: {self.path}")
        pattern = self.pattern or "*"
        return list(self.path.rglob(pattern) if self.recursive else self.path.glob(pattern))

    async def read(self) -> str:
        """Lists the folder, in a thread."""
        files: list[Path] = await call_function(self.list_files, False, {})
        return json.dumps({"files": [str(file.relative_to(self.path)) for file in files if file.is_file()]}, indent=2)


@dataclass(frozen=True, slots=True, eq=False)
class ResourceTemplate:
    """A family of resources: a function of the variables of a URI template."""

    fn: Callable[..., Any]
    uri_template: str
    name: str
    title: str | None
    description: str
    mime_type: str
    arguments: Arguments
    template: UriTemplate
    is_async: bool
    context_kwarg: str | None
    security: ResourceSecurity = DEFAULT_RESOURCE_SECURITY
    icons: Sequence[Any] | None = None
    annotations: Any = None
    meta: dict[str, Any] | None = None
    guards: Guards = UNGUARDED

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        uri_template: str,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        icons: Sequence[Any] | None = None,
        annotations: Any = None,
        meta: dict[str, Any] | None = None,
        security: ResourceSecurity = DEFAULT_RESOURCE_SECURITY,
        guards: Guards = UNGUARDED,
    ) -> ResourceTemplate:
        """A template of a function whose parameters are the template's variables.

        Raises ``RegistrationError`` if the two differ.
        """
        template = UriTemplate.parse(uri_template)
        context = find_context(fn)
        _check_parameters(fn, template, context)
        return cls(
            fn=fn,
            uri_template=uri_template,
            name=_function_name(fn, name),
            title=title,
            description=description or fn.__doc__ or "",
            mime_type=mime_type or "text/plain",
            arguments=arguments_of(fn, skip=[context] if context else []),
            template=template,
            is_async=is_async(fn),
            context_kwarg=context,
            security=security,
            icons=icons,
            annotations=annotations,
            meta=meta,
            guards=guards,
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The variables' JSON Schema."""
        return self.arguments.schema

    def matches(self, uri: str) -> Values | None:
        """The values of the variables in a URI; ``None`` if the URI does not match.

        Raises ``ResourceNotFoundError`` for an unsafe value, so that no other template is tried.
        """
        values = self.template.match(uri)
        if values is not None and self.security.validate(values) is not None:
            raise ResourceNotFoundError(f"Unknown resource: {uri}")
        return values

    async def read(self, uri: str, values: Values, context: Any) -> str | bytes | Contents | InputRequiredResult:
        """Calls the function with the values of the variables. Raises ``ResourceError`` if it fails,
        ``UnexpectedResourceError`` if it crashes.
        """
        try:
            keywords = self.keywords(values)
            if self.context_kwarg is not None:
                keywords[self.context_kwarg] = context
            value = await call_function(self.fn, self.is_async, keywords)
            if is_kind(type(value), InputRequiredResult, "InputRequiredResult"):
                return InputRequiredResult.model_validate(value)
        except Exception as error:
            raise resource_exception(uri, error, "creating resource from template") from error
        try:
            return await contents_of(value)
        except Exception as error:
            raise resource_exception(uri, error) from error

    def keywords(self, values: Values) -> dict[str, Any]:
        """The function's arguments: the variables' values, converted to the parameters' types."""
        instance = self.arguments.model.model_validate(values)
        return {parameter: getattr(instance, field) for field, parameter in self.arguments.parameters.items()}

    def listed(self) -> dict[str, Any]:
        """The entry of the template in lists, in wire names."""
        return _described(self, {"uriTemplate": self.uri_template, "name": self.name})


def listed_resource(resource: Any) -> dict[str, Any]:
    """The entry of a resource in lists, in wire names."""
    own = getattr(resource, "listed", None)
    if own is not None:
        # A face with rules of its own.
        return dict(own())
    uri = str(resource.uri)
    return _described(resource, {"uri": uri, "name": resource.name or uri})


class Contents(list[ReadResourceContents]):
    """A complete result of reading a resource: several contents, metadata of the result."""

    def __init__(self, contents: Iterable[ReadResourceContents], meta: dict[str, Any] | None = None) -> None:
        super().__init__(contents)
        self.meta = meta


def contents_json(uri: str, contents: Iterable[ReadResourceContents]) -> bytes:
    """The contents of a resource as JSON, without the members that the transport adds."""
    told: dict[str, Any] = {"contents": [_list_entry(uri, one.content, one.mime_type, one.meta) for one in contents]}
    meta = getattr(contents, "meta", None)
    return to_json(told if meta is None else {**told, "_meta": meta})


def _list_entry(uri: str, content: str | bytes, mime_type: str | None, meta: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"uri": uri}
    if isinstance(content, bytes):
        entry |= {"mimeType": mime_type or "application/octet-stream", "blob": base64.b64encode(content).decode()}
    else:
        entry |= {"mimeType": mime_type or "text/plain", "text": content}
    return entry if meta is None else {**entry, "_meta": meta}


async def contents_of(value: Any) -> str | bytes | Contents:
    """Converts a function's value to contents."""
    if isinstance(value, str | bytes):
        return value
    if is_kind(type(value), InputRequiredResult, "InputRequiredResult"):
        raise ValueError(
            "static resources cannot return InputRequiredResult; only resource template functions take part in rounds"
        )
    if isinstance(value, Resource) or is_kind(type(value), Resource, "Resource"):
        return await read_checked(value)
    return text_of(value)


async def read_checked(resource: Any) -> str | bytes | Contents:
    """A resource's contents. Raises ``TypeError`` if its ``read`` returns any other value."""
    whole = getattr(resource, "contents", None)
    # Resources of mcpace.fastmcp return complete contents.
    content = await (resource.read() if whole is None else whole())
    if not isinstance(content, str | bytes | Contents):
        raise TypeError(f"Resource.read() must return str or bytes, not {type(content).__name__}")
    return content


async def read_resource(resource: Any) -> str | bytes | Contents:
    """A resource's contents. Raises ``ResourceError`` if reading fails, ``UnexpectedResourceError`` if it crashes."""
    try:
        return await read_checked(resource)
    except InputRequired as questions:
        raise UnexpectedResourceError(f"Error reading resource {resource.uri}") from questions
    except Exception as error:
        raise resource_exception(str(resource.uri), error) from error


def check_static(fn: Callable[..., Any], uri: str) -> None:
    """Raises ``RegistrationError`` for a function that can't be a resource without variables."""
    context = find_context(fn)
    if context == PROVIDERS_CONTEXT:
        raise RegistrationError(
            f"Resource {uri!r} has no URI template variables, and so no context, but one of its providers takes one. "
            "Add a template variable to the URI, or take the value from a provider without"
        )
    signature = signature_of(fn)
    refuse_markers(name_of(fn), (one for name, one in signature.parameters.items() if name != context))
    parameters = {name for name in signature.parameters if name != context}
    if parameters:
        raise RegistrationError(
            f"Resource {uri!r} has no URI template variables, but the handler declares parameters "
            f"{sorted(parameters)}. Add matching {{...}} variables to the URI or remove the parameters."
        )
    if context is not None:
        raise RegistrationError(
            f"Resource {uri!r} has no URI template variables, but the handler declares a Context parameter. Context "
            "injection for static resources is not supported. Add a template variable to the URI or remove the "
            "Context parameter."
        )


def check_uri(uri: str) -> None:
    """Raises ``RegistrationError`` for an invalid URI."""
    if ":" not in uri:
        raise RegistrationError(f"Resource {uri!r}: a URI has a scheme, such as resource://{uri}")


def _check_parameters(fn: Callable[..., Any], template: UriTemplate, context: str | None) -> None:
    parameters = signature_of(fn).parameters
    refuse_markers(name_of(fn), (one for name, one in parameters.items() if name != context))
    taken = {name for name in parameters if name != context}
    variables = set(template.variable_names)
    if taken != variables:
        raise RegistrationError(
            f"Mismatch between URI parameters {sorted(variables)} and function parameters {sorted(taken)}"
        )
    optional = template.query_variable_names
    bare = sorted(name for name in optional if parameters[name].default is parameters[name].empty)
    if bare:
        raise RegistrationError(
            f"Resource {str(template)!r}: query parameter(s) {bare} have no default value. A client may omit a "
            "{?...}/{&...} query parameter, so the matching handler parameter must declare a default."
        )


def _function_name(fn: Callable[..., Any], name: str | None) -> str:
    called = name or name_of(fn)
    if called == "<lambda>":
        raise RegistrationError("You must provide a name for lambda functions")
    return called


def _described(resource: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
    whole = {
        **entry,
        "title": resource.title,
        "description": resource.description,
        "mimeType": resource.mime_type,
        "icons": wire(resource.icons),
        "annotations": wire(resource.annotations),
        "_meta": resource.meta,
    }
    return {key: value for key, value in whole.items() if value is not None}


def _encoding(mime_type: str) -> str | None:
    essence, *parameters = (part.strip() for part in mime_type.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value:
            return value.strip().strip('"')
    essence = essence.lower()
    is_text = essence.startswith("text/") or essence.endswith(("+json", "+xml")) or essence in _TEXTUAL
    # As UTF-8, with or without a byte order mark.
    return "utf-8-sig" if is_text else None


def _fetch_url(url: str) -> str:
    from urllib.error import HTTPError, URLError
    from urllib.request import urlopen

    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is no http or https URL")
    try:
        opened = urlopen(url, timeout=FETCH_SILENCE_S)
    except HTTPError:
        raise
    except URLError as error:
        # Only the cause is reported, as in the SDKs.
        raise (error.reason if isinstance(error.reason, OSError) else error) from None
    with opened as answer:
        charset = answer.headers.get_content_charset() or "utf-8"
        raw: bytes = answer.read(FETCH_LIMIT + 1)
    if len(raw) > FETCH_LIMIT:
        raise ValueError(f"{url!r} answers with more than {FETCH_LIMIT} bytes")
    return raw.decode(charset)
