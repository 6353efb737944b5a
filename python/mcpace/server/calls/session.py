"""The session of a call, the official SDK's ``ctx.session``: a method for each message to the client.

``send_request`` and ``send_notification`` take a message as an object of its type.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_json

from mcpace.server.calls.invocation import await_answer
from mcpace.server.errors import MCPError
from mcpace.server.sdk_compat.shared_types import shared
from mcpace.types import (
    INVALID_PARAMS,
    ClientCapabilities,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    Implementation,
    IncludeContext,
    InputResponse,
    InputResponses,
    ListRootsResult,
    LoggingLevel,
    ModelPreferences,
    SamplingMessage,
    Tool,
    ToolChoice,
    wire,
)

if TYPE_CHECKING:
    from mcpace.server.calls.context import Call, Context
    from mcpace.types import EmptyResult, InitializeRequestParams

ResultT = TypeVar("ResultT", bound=BaseModel)


class Session:
    """The client of a call."""

    __slots__ = ("_context",)

    def __init__(self, context: Context[Any, Any]) -> None:
        self._context = context

    @property
    def protocol_version(self) -> str:
        """The protocol's revision."""
        return self._call.revision

    @property
    def client_info(self) -> Implementation | None:
        """The client's name and version; ``None`` if it gives none."""
        raw = self._call.client_info
        return None if raw is None else shared(Implementation.model_validate_json(raw))

    @property
    def client_capabilities(self) -> ClientCapabilities | None:
        """The capabilities that the client declares."""
        return self._context.client_capabilities

    @property
    def client_params(self) -> InitializeRequestParams | None:
        """The client's initialization, under the official SDK's name; ``None`` if the client gives no name."""
        from mcpace.types import InitializeRequestParams

        info = self.client_info
        if info is None:
            return None
        capabilities = self.client_capabilities or ClientCapabilities()
        return shared(
            InitializeRequestParams(protocol_version=self.protocol_version, capabilities=capabilities, client_info=info)
        )

    def check_client_capability(self, capability: Any) -> bool:
        """Whether the client declared all that ``capability`` (a ``ClientCapabilities``) names."""
        declared = self.client_capabilities
        return declared is not None and _is_covered_by(wire(declared), wire(capability))

    async def create_message(
        self,
        messages: Sequence[SamplingMessage],
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        include_context: IncludeContext | None = None,
        temperature: float | None = None,
        stop_sequences: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        model_preferences: ModelPreferences | None = None,
        tools: Sequence[Tool] | None = None,
        tool_choice: ToolChoice | None = None,
        related_request_id: Any = None,
    ) -> CreateMessageResult | CreateMessageResultWithTools:
        """Asks the client's model. With tools, the client must have declared ``sampling.tools``."""
        del related_request_id  # All messages of a call belong to its request.
        with_tools = tools is not None or tool_choice is not None
        if with_tools and not self.check_client_capability({"sampling": {"tools": {}}}):
            raise MCPError(INVALID_PARAMS, "Client does not support sampling tools capability")
        params = CreateMessageRequestParams(
            messages=list(messages),
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            include_context=include_context,
            temperature=temperature,
            stop_sequences=stop_sequences,
            metadata=metadata,
            model_preferences=model_preferences,
            tools=None if tools is None else list(tools),
            tool_choice=tool_choice,
        )
        check_tool_results(params.messages)
        answer = await await_answer(self._call.sample(to_json(wire(params))))
        kind = CreateMessageResultWithTools if with_tools else CreateMessageResult
        return shared(kind.model_validate_json(answer))

    async def list_roots(self) -> ListRootsResult:
        """Asks for the client's roots."""
        return shared(ListRootsResult.model_validate_json(await await_answer(self._call.list_roots())))

    async def elicit(
        self, message: str, requested_schema: dict[str, Any], related_request_id: Any = None
    ) -> ElicitResult:
        """Shows the user a form given by its JSON Schema. :meth:`Context.elicit` takes a model instead."""
        return await self.elicit_form(message, requested_schema, related_request_id)

    async def elicit_form(
        self, message: str, requested_schema: dict[str, Any], related_request_id: Any = None
    ) -> ElicitResult:
        """Shows the user a form given by its JSON Schema."""
        del related_request_id
        params = ElicitRequestFormParams(message=message, requested_schema=requested_schema)
        return shared(ElicitResult.model_validate_json(await await_answer(self._call.elicit(to_json(wire(params))))))

    async def elicit_url(
        self, message: str, url: str, elicitation_id: str, related_request_id: Any = None
    ) -> ElicitResult:
        """Asks the user to visit a page."""
        del related_request_id
        params = ElicitRequestURLParams(message=message, url=url, elicitation_id=elicitation_id)
        return shared(ElicitResult.model_validate_json(await await_answer(self._call.elicit(to_json(wire(params))))))

    async def send_log_message(
        self, level: LoggingLevel, data: Any, logger: str | None = None, related_request_id: Any = None
    ) -> None:
        """Sends a log message. Since 2026-07-28 it goes only to a client that asked for this level with the call."""
        del related_request_id
        self._call.log(level, logger, to_json(data, fallback=str))

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports the progress of the call."""
        self._call.progress(progress, total, message)

    async def send_progress_notification(
        self,
        progress_token: str | int,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        related_request_id: str | None = None,
    ) -> None:
        """Reports the progress of the call. Raises ``ValueError`` for the token of another request."""
        del related_request_id
        token = (self._context.meta or {}).get("progressToken")
        if token != progress_token:
            raise ValueError(f"progress can be told for this call only, whose token is {token!r}")
        self._call.progress(progress, total, message)

    async def send_resource_updated(self, uri: Any) -> None:
        """Notifies the clients that subscribed to a resource that it changed."""
        await self._context.mcp_server.notify_resource_updated(str(uri))

    async def send_elicit_complete(self, elicitation_id: str, related_request_id: Any = None) -> None:
        """Notifies the client that the user has finished on the page."""
        del related_request_id
        self._call.elicitation_complete(elicitation_id)

    async def send_tool_list_changed(self) -> None:
        """Notifies clients that the list of tools changed."""
        await self._context.mcp_server.notify_list_changed("tools")

    async def send_prompt_list_changed(self) -> None:
        """Notifies clients that the list of prompts changed."""
        await self._context.mcp_server.notify_list_changed("prompts")

    async def send_resource_list_changed(self) -> None:
        """Notifies clients that the list of resources changed."""
        await self._context.mcp_server.notify_list_changed("resources")

    async def send_ping(self) -> EmptyResult:
        """Does nothing: the runtime itself checks whether the client is connected."""
        from mcpace.types import EmptyResult

        return EmptyResult()

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
        """Sends a notification by its type, such as ``LoggingMessageNotification``.

        Raises ``ValueError`` for a notification that a call does not send.
        """
        del related_request_id
        method, params = _message(notification)
        match method:
            case "notifications/message":
                await self.send_log_message(params["level"], params.get("data"), params.get("logger"))
            case "notifications/progress":
                total, message = params.get("total"), params.get("message")
                await self.send_progress_notification(params["progressToken"], params["progress"], total, message)
            case "notifications/resources/updated":
                await self.send_resource_updated(params["uri"])
            case "notifications/elicitation/complete":
                await self.send_elicit_complete(params["elicitationId"])
            case "notifications/tools/list_changed":
                await self.send_tool_list_changed()
            case "notifications/prompts/list_changed":
                await self.send_prompt_list_changed()
            case "notifications/resources/list_changed":
                await self.send_resource_list_changed()
            case _:
                raise ValueError(
                    f"{method} is not a notification of a call; server.notify(session_id, method, params) sends any"
                )

    async def send_request(self, request: Any, result_type: type[ResultT], *options: Any, **more: Any) -> ResultT:
        """Asks the client by the type of a request: sampling, elicitation, or roots.

        Raises ``ValueError`` for another request.
        """
        del options, more
        method, params = _message(request)
        match method:
            case "sampling/createMessage":
                answer = await await_answer(self._call.sample(to_json(params)))
            case "elicitation/create":
                answer = await await_answer(self._call.elicit(to_json(params)))
            case "roots/list":
                answer = await await_answer(self._call.list_roots())
            case _:
                raise ValueError(f"{method} is not a request that a server sends")
        return result_type.model_validate_json(answer)

    @property
    def _call(self) -> Call:
        call = self._context.call
        if call is None:
            raise ValueError("there is no session outside of a request")
        return call


ServerSession = Session
"""The official SDK's name of the class."""


def _message(message: Any) -> tuple[str, dict[str, Any]]:
    """The method and the parameters of a request or notification. mcp 1.x wraps some in a ``root``."""
    sent = wire(getattr(message, "root", message))
    return sent["method"], sent.get("params") or {}


_ANSWER: TypeAdapter[InputResponse] = TypeAdapter(InputResponse, config={"defer_build": True})


def answers_of(raw: bytes) -> InputResponses:
    """The client's answers as models. Answers of unknown types are left out, as if the client had not sent them."""
    answers: InputResponses = {}
    for key, answer in cast("dict[str, Any]", json.loads(raw)).items():
        try:
            answers[key] = shared(_ANSWER.validate_python(answer))
        except ValidationError:
            continue
    return answers


def check_tool_results(messages: Sequence[SamplingMessage]) -> None:
    """Raises ``ValueError`` if tool results don't match the preceding tool uses (2025-11-25, client/sampling)."""
    if not messages:
        return
    last = messages[-1].content_as_list
    before = messages[-2].content_as_list if len(messages) >= 2 else []
    uses = {block.id for block in before if block.type == "tool_use"}
    results = {block.tool_use_id for block in last if block.type == "tool_result"}
    if results:
        if any(block.type != "tool_result" for block in last):
            raise ValueError("The last message must contain only tool_result content if any is present")
        if len(messages) < 2:
            raise ValueError("tool_result requires a previous message containing tool_use")
        if not uses:
            raise ValueError("tool_result blocks do not match any tool_use in the previous message")
    if uses and uses != results:
        raise ValueError("ids of tool_result blocks and tool_use blocks from previous message do not match")


def _is_covered_by(declared: Any, wanted: Any) -> bool:
    if not isinstance(wanted, dict):
        return bool(declared == wanted)
    return isinstance(declared, dict) and all(
        key in declared and _is_covered_by(declared[key], value) for key, value in wanted.items()
    )
