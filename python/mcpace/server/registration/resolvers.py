"""Runs the resolvers of a call.

Before 2026-07-28 each question is sent to the client when it arises. Since then a round collects all questions that can
be asked together, ends with them, and is run again with the answers. The state of the rounds carries each answer with a
digest of the question that the client saw, so that an answer is valid for that question only.

Design constraint: a resolver's body runs in each round; an answer only replaces asking.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from mcpace.server.calls.context import Context
from mcpace.server.calls.elicitation import (
    AcceptedElicitation,
    CancelledElicitation,
    DeclinedElicitation,
    elicit,
    form_of,
)
from mcpace.server.calls.invocation import await_answer, call_function
from mcpace.server.errors import MCPError, ToolError, logger
from mcpace.server.registration.injection import Elicit, ListRoots, ResolverPlan, Sample, Source, identity_of
from mcpace.server.sdk_compat.shared_types import shared
from mcpace.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    MODERN,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    InputResponses,
    ListRootsRequest,
    ListRootsResult,
    is_kind,
    wire,
)

_STATE = 1

Outcome = AcceptedElicitation[Any] | DeclinedElicitation | CancelledElicitation
Question = Elicit[Any] | Sample | ListRoots


class _AnsweredQuestion(BaseModel):
    """One answered question, in the state of the rounds."""

    action: Literal["accept", "decline", "cancel"]
    data: Any = None
    q: str
    """Digest of the question."""


class _State(BaseModel):
    """The results of earlier rounds."""

    v: int = _STATE
    answered: dict[str, _AnsweredQuestion] = {}
    asked: dict[str, str] = {}
    """Digests of the questions of the last round, by key."""


class _Pending(Exception):
    """A resolver needs an answer that has not arrived yet."""


class _Round:
    """The resolvers of one call, in one round."""

    def __init__(
        self, plans: Mapping[Hashable, ResolverPlan], arguments: Mapping[str, Any], context: Context[Any, Any]
    ) -> None:
        self.plans = plans
        self.arguments = arguments
        self.context = context
        version = context.protocol_version
        self.in_rounds = version is not None and version >= MODERN
        self.answers: InputResponses = (context.input_responses or {}) if self.in_rounds else {}
        self.before = _read_state(context.request_state) if self.in_rounds else _State()
        self.outcomes: dict[Hashable, Outcome] = {}
        self.answered: dict[str, _AnsweredQuestion] = {}
        self.pending: dict[str, InputRequest] = {}

    def questions(self) -> InputRequiredResult:
        asked = {key: _question_digest(request) for key, request in self.pending.items()}
        state = _State(answered=self.answered, asked=asked)
        return InputRequiredResult(input_requests=self.pending, request_state=state.model_dump_json())


async def resolve(
    resolved: Mapping[str, Source],
    plans: Mapping[Hashable, ResolverPlan],
    arguments: Mapping[str, Any],
    context: Context[Any, Any],
) -> dict[str, Any] | InputRequiredResult:
    """The values of a tool's resolved parameters, or the questions that have to be asked first. Raises ``ToolError`` if
    the user declined, and the parameter's type does not include that.
    """
    this = _Round(plans, arguments, context)
    values = {}
    for name, source in resolved.items():
        try:
            values[name] = await _value(name, source, this)
        except _Pending:
            continue
    return this.questions() if this.pending else values


async def _value(name: str, source: Source, this: _Round) -> Any:
    assert source.resolver is not None
    outcome = await _run_resolver(source.resolver, this)
    if source.wants_outcome:
        return outcome
    if isinstance(outcome, AcceptedElicitation):
        return outcome.data
    raise ToolError(f"Resolver for parameter {name!r} could not resolve: elicitation was {outcome.action}")


async def _run_resolver(function: Callable[..., Any], this: _Round) -> Outcome:
    identity = identity_of(function)
    if identity in this.outcomes:
        return this.outcomes[identity]
    plan = this.plans[identity]
    if plan.key in this.pending:
        raise _Pending

    keywords: dict[str, Any] = {}
    is_waiting = False
    for name, source in plan.sources.items():
        if source.kind == "context":
            keywords[name] = this.context
        elif source.kind == "argument":
            keywords[name] = this.arguments[name]
        else:
            try:
                # All resolvers run, so that independent questions are asked in one round.
                keywords[name] = await _value(name, source, this)
            except _Pending:
                is_waiting = True
    if is_waiting:
        raise _Pending

    result = await call_function(plan.fn, plan.is_async, keywords)
    outcome = await _ask_client(result, plan.key, this) if _is_question(result) else _accepted_data(result)
    this.outcomes[identity] = outcome
    return outcome


async def _ask_client(question: Question, key: str, this: _Round) -> Outcome:
    if not this.in_rounds:
        return await _ask_now(question, key, this.context)
    request = _request_of(question)
    digest = _question_digest(request)
    known = _recalled_answer(question, key, digest, this)
    if known is not None:
        return known
    answer = this.answers.get(key)
    if answer is not None and this.before.asked.get(key) != digest:
        logger.info("Discarding the answer for resolver %r: the question changed since it was asked", key)
        answer = None
    if answer is None:
        _require_capability(question, key, this.context)
        this.pending[key] = request
        raise _Pending
    entry = _entry_of(question, key, answer, digest)
    this.answered[key] = entry
    return _outcome(question, entry)


async def _ask_now(question: Question, key: str, context: Context[Any, Any]) -> Outcome:
    call = context.call
    if call is None:
        raise ToolError(f"Resolver {key!r} asks the client something, and there is no client outside of a request")
    if isinstance(question, Elicit) or is_kind(type(question), Elicit, "Elicit"):
        try:
            return await elicit(call, question.message, question.schema)  # type: ignore[union-attr]
        except ValidationError as error:
            raise ToolError(f"Resolver {key!r}: received an invalid elicitation response") from error
        except ValueError as error:
            raise ToolError(f"Resolver {key!r}: {error}") from error
    params = _sampling(question)
    raw = await await_answer(call.list_roots() if params is None else call.sample(to_json(wire(params))))
    try:
        return _accepted_data(_answer_type(question).model_validate_json(raw))
    except ValidationError as error:
        raise ToolError(f"Resolver {key!r} received a response of the wrong kind") from error


def _entry_of(question: Question, key: str, answer: Any, digest: str) -> _AnsweredQuestion:
    if not _is_form(question):
        data = wire(answer)
        try:
            _answer_type(question).model_validate(data)
        except ValidationError as error:
            raise ToolError(f"Resolver {key!r} received a response of the wrong kind") from error
        return _AnsweredQuestion(action="accept", data=data, q=digest)
    if not isinstance(answer, ElicitResult):
        raise ToolError(f"Resolver {key!r} received a non-elicitation response")
    if answer.action != "accept":
        return _AnsweredQuestion(action=answer.action, q=digest)
    if answer.content is None:
        raise ToolError(f"Resolver {key!r} received an accepted elicitation with no content")
    entry = _AnsweredQuestion(action="accept", data=answer.content, q=digest)
    try:
        _outcome(question, entry)
    except ValidationError as error:
        raise ToolError(
            f"Resolver {key!r} received an accepted elicitation whose content does not match the requested schema"
        ) from error
    return entry


def _recalled_answer(question: Question, key: str, digest: str, this: _Round) -> Outcome | None:
    """The answer of an earlier round to this question."""
    entry = this.before.answered.get(key)
    if entry is None or entry.q != digest:
        return None
    try:
        outcome = _outcome(question, entry)
    except ValidationError:
        return None
    # The answer goes unchanged into the state of the next round.
    this.answered[key] = entry
    return outcome


def _outcome(question: Question, entry: _AnsweredQuestion) -> Outcome:
    if entry.action == "decline":
        return shared(DeclinedElicitation())
    if entry.action == "cancel":
        return shared(CancelledElicitation())
    kind: Any = question.schema if _is_form(question) else _answer_type(question)  # type: ignore[union-attr]
    return _accepted_data(kind.model_validate(entry.data))


def _accepted_data(data: Any) -> AcceptedElicitation[Any]:
    # Not validated: a resolver may return any value.
    return shared(AcceptedElicitation[Any].model_construct(data=data))


def _is_question(value: Any) -> bool:
    return is_kind(type(value), (Elicit, Sample, ListRoots), "Elicit", "Sample", "ListRoots")


def _is_form(question: Any) -> bool:
    return is_kind(type(question), Elicit, "Elicit")


def _sampling(question: Any) -> CreateMessageRequestParams | None:
    if is_kind(type(question), Sample, "Sample"):
        return CreateMessageRequestParams.model_validate(question.params)
    return None


def _answer_type(question: Question) -> type[BaseModel]:
    params = _sampling(question)
    if params is None:
        return ListRootsResult
    with_tools = params.tools is not None or params.tool_choice is not None
    return CreateMessageResultWithTools if with_tools else CreateMessageResult


def _request_of(question: Question) -> InputRequest:
    if _is_form(question):
        whole = form_of(question.schema)  # type: ignore[union-attr]
        # Members of a form's schema (2026-07-28, schema: `ElicitRequestFormParams`).
        form: dict[str, Any] = {key: whole[key] for key in ("type", "properties", "required") if key in whole}
        message = question.message  # type: ignore[union-attr]
        return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=form))
    params = _sampling(question)
    return ListRootsRequest() if params is None else CreateMessageRequest(params=params)


def _question_digest(request: InputRequest) -> str:
    params = None if request.params is None else wire(request.params)
    # ASCII, so that lone surrogates in a client's text do not stop it.
    text = json.dumps(params, separators=(",", ":"))
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:16]).decode().rstrip("=")


def _read_state(text: str | None) -> _State:
    """Reads the state, whose signature is verified. The state of another release of the server counts as none."""
    try:
        state = _State.model_validate_json(text) if text else _State()
    except ValidationError:
        return _State()
    return state if state.v == _STATE else _State()


_FORM: dict[str, Any] = {"elicitation": {"form": {}}}


def _require_capability(question: Question, key: str, context: Context[Any, Any]) -> None:
    declared = wire(context.client_capabilities) or {}
    if _is_form(question):
        elicitation = declared.get("elicitation")
        # A client that declares no modes accepts forms, as before modes existed.
        if elicitation is not None and ("form" in elicitation or "url" not in elicitation):
            return
        name, required = "form elicitation", _FORM
    elif (params := _sampling(question)) is not None:
        with_tools = params.tools is not None or params.tool_choice is not None
        sampling = declared.get("sampling")
        if sampling is not None and (not with_tools or "tools" in sampling):
            return
        name = "sampling.tools" if with_tools else "sampling"
        required = {"sampling": {"tools": {}} if with_tools else {}}
    else:
        if "roots" in declared:
            return
        name, required = "roots", {"roots": {}}
    raise MCPError(
        MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"Client did not declare the {name} capability required by resolver {key!r}",
        {"requiredCapabilities": required},
    )
