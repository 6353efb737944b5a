"""Types of the protocol that authors and callers use: content, descriptions, questions, results.

One model a construct, with the fields of every revision, in the names that the official SDK gives them (``mime_type``
here, ``mimeType`` on the wire: :func:`wire`). Objects of that SDK may stand wherever one of these may: whatever has
``model_dump`` is read by its wire names, and nothing is imported for it.

Requests, notifications and results of lists are in :mod:`mcpace.messages`; this module offers them, too.

Design constraint: pydantic only, and built when first used, since this is loaded with every server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

if TYPE_CHECKING:
    from mcpace.messages import *  # noqa: F403

MODERN: Final = "2026-07-28"
"""The first revision without sessions: requests stand alone, and questions to the client come in rounds."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REQUEST_TIMEOUT: Final = -32001
URL_ELICITATION_REQUIRED: Final = -32042
"""2025-11-25 only."""
MISSING_REQUIRED_CLIENT_CAPABILITY: Final = -32021
"""2026-07-28."""

Role = Literal["user", "assistant"]
LoggingLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
IncludeContext = Literal["none", "thisServer", "allServers"]
StopReason: TypeAlias = Literal["endTurn", "stopSequence", "maxTokens", "toolUse"] | str
Meta: TypeAlias = dict[str, Any]
RequestId: TypeAlias = int | str


def wire(value: Any) -> Any:
    """A model's members under their wire names, without those that are ``None``; anything else as it is.

    Takes models of the official SDK too.
    """
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, list | tuple):
        return [wire(item) for item in value]
    if isinstance(value, dict):
        return {key: wire(item) for key, item in value.items()}
    return value


class Model(BaseModel):
    """Base of all: wire names on the wire, Python's in Python, and models of other SDKs read by their wire names."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _read_foreign(cls, value: Any) -> Any:
        if isinstance(value, dict | cls) or not hasattr(value, "model_dump"):
            return value
        return wire(value)

    if not TYPE_CHECKING:  # It would hide misspelled attributes from type checkers.

        def __getattr__(self, name: str) -> Any:
            """A member by its wire name, as mcp 1.x has it: ``result.isError``."""
            for field, info in type(self).model_fields.items():
                if info.alias == name and field != name:
                    return getattr(self, field)
            return super().__getattr__(name)


class WithMeta(Model):
    """Base of what may carry metadata."""

    meta: Meta | None = Field(alias="_meta", default=None)
    """Metadata: ``_meta`` on the wire."""


class Icon(Model):
    """A picture (since 2025-11-25)."""

    src: str
    """``https:`` or ``data:``."""
    mime_type: str | None = None
    sizes: list[str] | None = None
    """``48x48``, or ``any``."""
    theme: Literal["light", "dark"] | None = None


class Annotations(Model):
    """Hints for whoever shows something."""

    audience: list[Role] | None = None
    priority: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    last_modified: str | None = None
    """ISO 8601."""


class ToolAnnotations(Model):
    """Hints about a tool. A client doesn't rely on them unless it trusts the server."""

    title: str | None = None
    read_only_hint: bool | None = None
    """It changes nothing."""
    destructive_hint: bool | None = None
    """It may change or delete what is there; otherwise it only adds."""
    idempotent_hint: bool | None = None
    """A second call with the same arguments changes nothing more."""
    open_world_hint: bool | None = None
    """It deals with a world outside, such as the web."""


class Named(WithMeta):
    """Base of what has a name for programs and may have one for people."""

    name: str
    title: str | None = None


class Implementation(Model):
    """Name and version of a client or server."""

    name: str
    title: str | None = None
    version: str
    description: str | None = None
    website_url: str | None = None
    icons: list[Icon] | None = None


# Contents ------------------------------------------------------------------------------------------------------------


class TextContent(WithMeta):
    """Text."""

    type: Literal["text"] = "text"
    text: str
    annotations: Annotations | None = None


class ImageContent(WithMeta):
    """A picture. :class:`mcpace.Image` makes one from a file or from bytes."""

    type: Literal["image"] = "image"
    data: str
    """Base64."""
    mime_type: str
    annotations: Annotations | None = None


class AudioContent(WithMeta):
    """Sound. :class:`mcpace.Audio` makes one from a file or from bytes."""

    type: Literal["audio"] = "audio"
    data: str
    """Base64."""
    mime_type: str
    annotations: Annotations | None = None


class ResourceContents(WithMeta):
    """Base of what a resource holds."""

    uri: str
    mime_type: str | None = None


class TextResourceContents(ResourceContents):
    """A resource's text."""

    text: str


class BlobResourceContents(ResourceContents):
    """A resource's bytes."""

    blob: str
    """Base64."""


class EmbeddedResource(WithMeta):
    """A resource's contents, within a result or a prompt."""

    type: Literal["resource"] = "resource"
    resource: TextResourceContents | BlobResourceContents
    annotations: Annotations | None = None


class Resource(Named):
    """A resource, as lists show it."""

    uri: str
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    """In bytes."""
    icons: list[Icon] | None = None
    annotations: Annotations | None = None


class ResourceLink(Resource):
    """A resource that the client may read, named in a result or a prompt."""

    type: Literal["resource_link"] = "resource_link"


class ResourceTemplate(Named):
    """A family of resources, as lists show it."""

    uri_template: str
    """RFC 6570."""
    description: str | None = None
    mime_type: str | None = None
    icons: list[Icon] | None = None
    annotations: Annotations | None = None


ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
"""Content of results and prompts."""


# Tools and prompts ---------------------------------------------------------------------------------------------------


class Tool(Named):
    """A tool, as lists show it."""

    description: str | None = None
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    icons: list[Icon] | None = None
    annotations: ToolAnnotations | None = None


class Result(WithMeta):
    """Base of results."""


class CallToolResult(Result):
    """A tool's result, where a tool makes the whole of it itself."""

    content: list[ContentBlock]
    """For the model."""
    structured_content: Any = None
    """For programs."""
    is_error: bool = False
    """Whether the tool failed: the model reads why."""
    result_type: str = "complete"


class PromptArgument(Model):
    """An argument of a prompt."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool | None = None


class Prompt(Named):
    """A prompt, as lists show it."""

    description: str | None = None
    arguments: list[PromptArgument] | None = None
    icons: list[Icon] | None = None


class PromptMessage(Model):
    """One message of a prompt."""

    role: Role
    content: ContentBlock


class GetPromptResult(Result):
    """A prompt, filled in."""

    description: str | None = None
    messages: list[PromptMessage]
    result_type: str = "complete"


class ReadResourceResult(Result):
    """A resource, read."""

    contents: list[TextResourceContents | BlobResourceContents]
    ttl_ms: Annotated[int, Field(ge=0)] = 0
    cache_scope: Literal["public", "private"] = "private"
    result_type: str = "complete"


# Completion ----------------------------------------------------------------------------------------------------------


class ResourceTemplateReference(Model):
    """The template whose variable is being completed."""

    type: Literal["ref/resource"] = "ref/resource"
    uri: str


class PromptReference(Model):
    """The prompt whose argument is being completed."""

    type: Literal["ref/prompt"] = "ref/prompt"
    name: str
    title: str | None = None


class CompletionArgument(Model):
    """The argument that is completed, with the text so far."""

    name: str
    value: str


class CompletionContext(Model):
    """The other arguments, as far as they are known."""

    arguments: dict[str, str] | None = None


class Completion(Model):
    """Proposals."""

    values: list[str]
    """At most 100 are told."""
    total: int | None = None
    has_more: bool | None = None


# Sampling ------------------------------------------------------------------------------------------------------------


class ToolUseContent(WithMeta):
    """A model's wish to call a tool."""

    type: Literal["tool_use"] = "tool_use"
    name: str
    id: str
    input: dict[str, Any]


class ToolResultContent(WithMeta):
    """Result of a tool that a model asked for."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: list[ContentBlock] = []
    structured_content: Any = None
    is_error: bool | None = None


SamplingContent: TypeAlias = TextContent | ImageContent | AudioContent
SamplingMessageContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent


class SamplingMessage(WithMeta):
    """A message to or from the client's model."""

    role: Role
    content: SamplingMessageContentBlock | list[SamplingMessageContentBlock]

    @property
    def content_as_list(self) -> list[SamplingMessageContentBlock]:
        """The blocks, be it one or several."""
        return self.content if isinstance(self.content, list) else [self.content]


class ModelHint(Model):
    """A wish for a model."""

    name: str | None = None
    """Part of a model's name."""


class ModelPreferences(Model):
    """Which model is wanted. The client decides."""

    hints: list[ModelHint] | None = None
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None


class ToolChoice(Model):
    """Whether the client's model uses tools."""

    mode: Literal["auto", "required", "none"] | None = None


class CreateMessageRequestParams(WithMeta):
    """Request to the client's model."""

    messages: list[SamplingMessage]
    model_preferences: ModelPreferences | None = None
    system_prompt: str | None = None
    include_context: IncludeContext | None = None
    temperature: float | None = None
    max_tokens: int
    stop_sequences: list[str] | None = None
    metadata: dict[str, Any] | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None


class CreateMessageRequest(Model):
    """A question to the client's model, within an :class:`InputRequiredResult`."""

    method: Literal["sampling/createMessage"] = "sampling/createMessage"
    params: CreateMessageRequestParams


class CreateMessageResult(Result):
    """Answer of the client's model."""

    role: Role
    content: SamplingContent
    model: str
    stop_reason: StopReason | None = None


class CreateMessageResultWithTools(Result):
    """Answer of the client's model, if it was given tools."""

    role: Role
    content: SamplingMessageContentBlock | list[SamplingMessageContentBlock]
    model: str
    stop_reason: StopReason | None = None

    @property
    def content_as_list(self) -> list[SamplingMessageContentBlock]:
        """The blocks, be it one or several."""
        return self.content if isinstance(self.content, list) else [self.content]


# Elicitation and roots -----------------------------------------------------------------------------------------------


class ElicitRequestFormParams(WithMeta):
    """A form for the user."""

    mode: Literal["form"] = "form"
    message: str
    requested_schema: dict[str, Any]


class ElicitRequestURLParams(WithMeta):
    """A page that the user is to visit."""

    mode: Literal["url"] = "url"
    message: str
    url: str
    elicitation_id: str | None = None


ElicitRequestParams: TypeAlias = ElicitRequestURLParams | ElicitRequestFormParams


class ElicitRequest(Model):
    """A question to the user, within an :class:`InputRequiredResult`."""

    method: Literal["elicitation/create"] = "elicitation/create"
    params: ElicitRequestParams


class ElicitResult(Result):
    """The user's reaction to a form or a page."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


class ListRootsRequest(Model):
    """A question for the client's roots, within an :class:`InputRequiredResult`."""

    method: Literal["roots/list"] = "roots/list"
    params: dict[str, Any] | None = None


class Root(WithMeta):
    """A folder or file that the server may work on."""

    uri: str
    name: str | None = None


class ListRootsResult(Result):
    """The client's roots."""

    roots: list[Root]


InputRequest: TypeAlias = CreateMessageRequest | ListRootsRequest | ElicitRequest
InputResponse: TypeAlias = CreateMessageResult | CreateMessageResultWithTools | ListRootsResult | ElicitResult
InputRequests: TypeAlias = dict[str, InputRequest]
InputResponses: TypeAlias = dict[str, InputResponse]


class InputRequiredResult(Result):
    """Asks the client something before there is a result (2026-07-28). It calls again, with the answers."""

    result_type: Literal["input_required"] = "input_required"
    input_requests: InputRequests | None = None
    request_state: str | None = None

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        if not self.input_requests and self.request_state is None:
            raise ValueError("InputRequiredResult requires at least one of input_requests or request_state")
        return self


# Capabilities --------------------------------------------------------------------------------------------------------


class RootsCapability(Model):
    """The client has roots."""

    list_changed: bool | None = None


class SamplingCapability(Model):
    """The client has a model."""

    context: dict[str, Any] | None = None
    tools: dict[str, Any] | None = None


class ElicitationCapability(Model):
    """The client has a user. Without a mode, it takes forms."""

    form: dict[str, Any] | None = None
    url: dict[str, Any] | None = None


class ClientCapabilities(Model):
    """Capabilities of the client."""

    experimental: dict[str, dict[str, Any]] | None = None
    sampling: SamplingCapability | None = None
    elicitation: ElicitationCapability | None = None
    roots: RootsCapability | None = None
    extensions: dict[str, dict[str, Any]] | None = None


class ErrorData(Model):
    """A protocol error: JSON-RPC's ``error``."""

    code: int
    message: str
    data: Any = None


# Foreign objects -----------------------------------------------------------------------------------------------------

_FOREIGN_ROOTS = frozenset({"mcp", "mcp_types", "fastmcp"})
_CONTENT_NAMES = frozenset({"TextContent", "ImageContent", "AudioContent", "ResourceLink", "EmbeddedResource"})
_OWN_CONTENT = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)


def is_kind(cls: Any, own: type | tuple[type, ...], *names: str) -> bool:
    """Whether a class is (derived from) one of ours, or one of these names of the official SDK or FastMCP."""
    if not isinstance(cls, type):
        return False
    if issubclass(cls, own):
        return True
    return any(base.__name__ in names and base.__module__.partition(".")[0] in _FOREIGN_ROOTS for base in cls.__mro__)


def is_content_type(cls: Any) -> bool:
    """Whether a class is a content block's."""
    return is_kind(cls, _OWN_CONTENT, *_CONTENT_NAMES)


def content_block(value: Any) -> ContentBlock:
    """A content block of ours from any SDK's."""
    if isinstance(value, _OWN_CONTENT):
        return value
    own = {cls.model_fields["type"].default: cls for cls in _OWN_CONTENT}
    block: ContentBlock = own[value.type].model_validate(value)
    return block


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):  # The import system asks for `__path__`, which is no reason to load the messages.
        import mcpace.messages as messages

        if name in vars(messages):
            return vars(messages)[name]
    raise AttributeError(f"module 'mcpace.types' has no attribute {name!r}")
