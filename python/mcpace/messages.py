"""Requests, notifications and their results: the protocol's messages, as clients, middleware and handlers see them.

One model a message, in the official SDK's names. :mod:`mcpace.types` offers them too, and loads this module when one
of them is first used.

Design constraint: pydantic only. Tasks are deliberately absent.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from mcpace.types import (
    CallToolResult,
    ClientCapabilities,
    Completion,
    CompletionArgument,
    CompletionContext,
    CreateMessageRequest,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    GetPromptResult,
    Implementation,
    InputResponses,
    ListRootsRequest,
    ListRootsResult,
    LoggingLevel,
    Model,
    Named,
    Prompt,
    PromptReference,
    ReadResourceResult,
    RequestId,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    Result,
    Tool,
    WithMeta,
)

LATEST_PROTOCOL_VERSION: Final = "2026-07-28"
DEFAULT_NEGOTIATED_VERSION: Final = "2025-03-26"
JSONRPC_VERSION: Final = "2.0"
PROTOCOL_VERSION_META_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_META_KEY: Final = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_META_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_META_KEY: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO_META_KEY: Final = "io.modelcontextprotocol/serverInfo"

CONNECTION_CLOSED: Final = -32000
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_PROTOCOL_VERSION: Final = -32022

ProgressToken: TypeAlias = str | int
Cursor: TypeAlias = str
ElicitRequestedSchema: TypeAlias = dict[str, Any]
BaseMetadata = Named


# Bases ---------------------------------------------------------------------------------------------------------------


class RequestParams(WithMeta):
    """Base of parameters of requests."""


class NotificationParams(WithMeta):
    """Base of parameters of notifications."""


class PaginatedRequestParams(RequestParams):
    """Which page of a list is asked for."""

    cursor: str | None = None


class InputResponseRequestParams(RequestParams):
    """Base of parameters of requests that may be sent again with the client's answers (2026-07-28)."""

    input_responses: InputResponses | None = None
    request_state: str | None = None


class Request(Model):
    """Base of requests."""

    method: str
    params: Any = None


class Notification(Model):
    """Base of notifications."""

    method: str
    params: Any = None


class PaginatedRequest(Request):
    """Base of requests for a page of a list."""

    params: PaginatedRequestParams | None = None


class CacheableResult(Result):
    """Base of results that clients may keep (2026-07-28)."""

    ttl_ms: int = 0
    cache_scope: Literal["public", "private"] = "private"
    result_type: str = "complete"


class PaginatedResult(CacheableResult):
    """Base of pages of a list."""

    next_cursor: str | None = None


class EmptyResult(Result):
    """The result of a request that succeeded and has nothing to say."""


# Capabilities --------------------------------------------------------------------------------------------------------


class PromptsCapability(Model):
    """The server has prompts."""

    list_changed: bool | None = None


class ResourcesCapability(Model):
    """The server has resources."""

    subscribe: bool | None = None
    list_changed: bool | None = None


class ToolsCapability(Model):
    """The server has tools."""

    list_changed: bool | None = None


class CompletionsCapability(Model):
    """The server proposes values of arguments."""


class LoggingCapability(Model):
    """The server sends log messages."""


class FormElicitationCapability(Model):
    """The client shows forms."""


class UrlElicitationCapability(Model):
    """The client opens pages."""


class SamplingContextCapability(Model):
    """The client's model takes the context of servers."""


class SamplingToolsCapability(Model):
    """The client's model uses tools."""


class ServerCapabilities(Model):
    """Capabilities of a server."""

    experimental: dict[str, Any] | None = None
    logging: dict[str, Any] | None = None
    prompts: PromptsCapability | None = None
    resources: ResourcesCapability | None = None
    tools: ToolsCapability | None = None
    completions: dict[str, Any] | None = None
    tasks: dict[str, Any] | None = None
    extensions: dict[str, Any] | None = None


class SubscriptionFilter(Model):
    """The changes that a client wants to be told of, or that a server agreed to tell."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None


# Requests ------------------------------------------------------------------------------------------------------------


class InitializeRequestParams(RequestParams):
    """Parameters of ``initialize``."""

    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation


class InitializeRequest(Request):
    """Begins a session."""

    method: Literal["initialize"] = "initialize"
    params: InitializeRequestParams


class PingRequest(Request):
    """Asks whether the other side is there."""

    method: Literal["ping"] = "ping"
    params: RequestParams | None = None


class DiscoverRequest(Request):
    """Asks what the server is and can do (2026-07-28)."""

    method: Literal["server/discover"] = "server/discover"
    params: RequestParams | None = None


class CallToolRequestParams(InputResponseRequestParams):
    """Parameters of ``tools/call``."""

    name: str
    arguments: dict[str, Any] | None = None


class CallToolRequest(Request):
    """Calls a tool."""

    method: Literal["tools/call"] = "tools/call"
    params: CallToolRequestParams


class GetPromptRequestParams(InputResponseRequestParams):
    """Parameters of ``prompts/get``."""

    name: str
    arguments: dict[str, str] | None = None


class GetPromptRequest(Request):
    """Fills a prompt in."""

    method: Literal["prompts/get"] = "prompts/get"
    params: GetPromptRequestParams


class ReadResourceRequestParams(InputResponseRequestParams):
    """Parameters of ``resources/read``."""

    uri: str


class ReadResourceRequest(Request):
    """Reads a resource."""

    method: Literal["resources/read"] = "resources/read"
    params: ReadResourceRequestParams


class SubscribeRequestParams(RequestParams):
    """Parameters of ``resources/subscribe``."""

    uri: str


class SubscribeRequest(Request):
    """Asks to be told of changes of a resource."""

    method: Literal["resources/subscribe"] = "resources/subscribe"
    params: SubscribeRequestParams


class UnsubscribeRequestParams(RequestParams):
    """Parameters of ``resources/unsubscribe``."""

    uri: str


class UnsubscribeRequest(Request):
    """Ends a subscription."""

    method: Literal["resources/unsubscribe"] = "resources/unsubscribe"
    params: UnsubscribeRequestParams


class SetLevelRequestParams(RequestParams):
    """Parameters of ``logging/setLevel``."""

    level: LoggingLevel


class SetLevelRequest(Request):
    """Sets the least level of log messages."""

    method: Literal["logging/setLevel"] = "logging/setLevel"
    params: SetLevelRequestParams


class CompleteRequestParams(RequestParams):
    """Parameters of ``completion/complete``."""

    ref: PromptReference | ResourceTemplateReference
    argument: CompletionArgument
    context: CompletionContext | None = None


class CompleteRequest(Request):
    """Asks for values of an argument."""

    method: Literal["completion/complete"] = "completion/complete"
    params: CompleteRequestParams


class SubscriptionsListenRequestParams(RequestParams):
    """Parameters of ``subscriptions/listen``."""

    notifications: SubscriptionFilter


class SubscriptionsListenRequest(Request):
    """Asks to be told of changes on one stream (2026-07-28)."""

    method: Literal["subscriptions/listen"] = "subscriptions/listen"
    params: SubscriptionsListenRequestParams


class ListToolsRequest(PaginatedRequest):
    """Asks for a page of tools."""

    method: Literal["tools/list"] = "tools/list"


class ListResourcesRequest(PaginatedRequest):
    """Asks for a page of resources."""

    method: Literal["resources/list"] = "resources/list"


class ListResourceTemplatesRequest(PaginatedRequest):
    """Asks for a page of templates of resources."""

    method: Literal["resources/templates/list"] = "resources/templates/list"


class ListPromptsRequest(PaginatedRequest):
    """Asks for a page of prompts."""

    method: Literal["prompts/list"] = "prompts/list"


# Results --------------------------------------------------------------------------------------------------------------


class InitializeResult(Result):
    """The server, and what it can do."""

    protocol_version: str
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | None = None


class DiscoverResult(CacheableResult):
    """The server, and what it can do (2026-07-28)."""

    supported_versions: list[str]
    capabilities: ServerCapabilities
    instructions: str | None = None


class ListToolsResult(PaginatedResult):
    """A page of tools."""

    tools: list[Tool]


class ListResourcesResult(PaginatedResult):
    """A page of resources."""

    resources: list[Resource]


class ListResourceTemplatesResult(PaginatedResult):
    """A page of templates of resources."""

    resource_templates: list[ResourceTemplate]


class ListPromptsResult(PaginatedResult):
    """A page of prompts."""

    prompts: list[Prompt]


class CompleteResult(Result):
    """Values proposed for an argument."""

    completion: Completion


# Notifications --------------------------------------------------------------------------------------------------------


class CancelledNotificationParams(NotificationParams):
    """Parameters of ``notifications/cancelled``."""

    request_id: RequestId | None = None
    reason: str | None = None


class CancelledNotification(Notification):
    """A request is no longer waited for."""

    method: Literal["notifications/cancelled"] = "notifications/cancelled"
    params: CancelledNotificationParams


class ProgressNotificationParams(NotificationParams):
    """Parameters of ``notifications/progress``."""

    progress_token: ProgressToken
    progress: float
    total: float | None = None
    message: str | None = None


class ProgressNotification(Notification):
    """How far a request is."""

    method: Literal["notifications/progress"] = "notifications/progress"
    params: ProgressNotificationParams


class LoggingMessageNotificationParams(NotificationParams):
    """Parameters of ``notifications/message``."""

    level: LoggingLevel
    logger: str | None = None
    data: Any = None


class LoggingMessageNotification(Notification):
    """A log message of the server."""

    method: Literal["notifications/message"] = "notifications/message"
    params: LoggingMessageNotificationParams


class ResourceUpdatedNotificationParams(NotificationParams):
    """Parameters of ``notifications/resources/updated``."""

    uri: str


class ResourceUpdatedNotification(Notification):
    """A resource changed."""

    method: Literal["notifications/resources/updated"] = "notifications/resources/updated"
    params: ResourceUpdatedNotificationParams


class ElicitCompleteNotificationParams(NotificationParams):
    """Parameters of ``notifications/elicitation/complete``."""

    elicitation_id: str


class ElicitCompleteNotification(Notification):
    """A page that the user was asked to visit is done with."""

    method: Literal["notifications/elicitation/complete"] = "notifications/elicitation/complete"
    params: ElicitCompleteNotificationParams


class InitializedNotification(Notification):
    """The client is ready."""

    method: Literal["notifications/initialized"] = "notifications/initialized"
    params: NotificationParams | None = None


class ToolListChangedNotification(Notification):
    """The list of tools changed."""

    method: Literal["notifications/tools/list_changed"] = "notifications/tools/list_changed"
    params: NotificationParams | None = None


class ResourceListChangedNotification(Notification):
    """The list of resources changed."""

    method: Literal["notifications/resources/list_changed"] = "notifications/resources/list_changed"
    params: NotificationParams | None = None


class PromptListChangedNotification(Notification):
    """The list of prompts changed."""

    method: Literal["notifications/prompts/list_changed"] = "notifications/prompts/list_changed"
    params: NotificationParams | None = None


class RootsListChangedNotification(Notification):
    """The list of roots changed."""

    method: Literal["notifications/roots/list_changed"] = "notifications/roots/list_changed"
    params: NotificationParams | None = None


# Errors and envelopes ------------------------------------------------------------------------------------------------


class ElicitationRequiredErrorData(Model):
    """The data of ``URL_ELICITATION_REQUIRED``."""

    elicitations: list[ElicitRequestURLParams]


class MissingRequiredClientCapabilityErrorData(Model):
    """The data of ``MISSING_REQUIRED_CLIENT_CAPABILITY``."""

    required_capabilities: ClientCapabilities


class UnsupportedProtocolVersionErrorData(Model):
    """The data of ``UNSUPPORTED_PROTOCOL_VERSION``."""

    supported: list[str]
    requested: str


class JSONRPCRequest(Request):
    """A request in its envelope."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: RequestId


class JSONRPCNotification(Notification):
    """A notification in its envelope."""

    jsonrpc: Literal["2.0"] = "2.0"


class JSONRPCResponse(Model):
    """A result in its envelope."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: RequestId
    result: dict[str, Any]


class JSONRPCError(Model):
    """An error in its envelope."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: RequestId | None
    error: ErrorData


JSONRPCMessage: TypeAlias = JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError

ClientRequest: TypeAlias = (
    PingRequest
    | InitializeRequest
    | DiscoverRequest
    | CompleteRequest
    | SetLevelRequest
    | GetPromptRequest
    | ListPromptsRequest
    | ListResourcesRequest
    | ListResourceTemplatesRequest
    | ReadResourceRequest
    | SubscribeRequest
    | UnsubscribeRequest
    | SubscriptionsListenRequest
    | CallToolRequest
    | ListToolsRequest
)
ClientNotification: TypeAlias = (
    CancelledNotification | ProgressNotification | InitializedNotification | RootsListChangedNotification
)
ClientResult: TypeAlias = (
    EmptyResult | CreateMessageResult | CreateMessageResultWithTools | ListRootsResult | ElicitResult
)
ServerRequest: TypeAlias = PingRequest | CreateMessageRequest | ListRootsRequest | ElicitRequest
ServerNotification: TypeAlias = (
    CancelledNotification
    | ProgressNotification
    | LoggingMessageNotification
    | ResourceUpdatedNotification
    | ResourceListChangedNotification
    | ToolListChangedNotification
    | PromptListChangedNotification
    | ElicitCompleteNotification
)
ServerResult: TypeAlias = (
    EmptyResult
    | InitializeResult
    | DiscoverResult
    | CompleteResult
    | GetPromptResult
    | ListPromptsResult
    | ListResourcesResult
    | ListResourceTemplatesResult
    | ReadResourceResult
    | CallToolResult
    | ListToolsResult
)
