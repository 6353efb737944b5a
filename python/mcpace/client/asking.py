"""The server's questions and news, brought to the user's callbacks.

Design constraint: a callback that fails refuses the question in words, and never takes the client down.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from mcpace import _core
from mcpace.client import results
from mcpace.server.errors import MCPError
from mcpace.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CreateMessageRequestParams,
    ElicitRequestParams,
    wire,
)

logger = logging.getLogger("mcpace.client")

_ELICIT: TypeAdapter[ElicitRequestParams] = TypeAdapter(ElicitRequestParams)


@dataclass(frozen=True)
class ClientRequestContext:
    """What a callback is told beside the question."""

    session: Any
    """The client."""
    request_id: Any
    meta: dict[str, Any] | None = None


@dataclass
class Callbacks:
    """What the user answers and hears."""

    client: Any
    sampling: Callable[..., Any] | None = None
    elicitation: Callable[..., Any] | None = None
    list_roots: Callable[..., Any] | None = None
    logging: Callable[..., Any] | None = None
    messages: Callable[..., Any] | None = None

    def answered(self, sampling_capabilities: Any) -> dict[str, Any]:
        """What is declared to the server."""
        told: dict[str, Any] = {"roots": self.list_roots is not None}
        if self.sampling is not None:
            told["sampling"] = wire(sampling_capabilities) or {}
        if self.elicitation is not None:
            told["elicitation"] = {"form": {}, "url": {}}
        return told

    @property
    def hear(self) -> bool:
        """Whether anybody wants the server's news."""
        return self.logging is not None or self.messages is not None

    def call(self, question: _core.Question) -> Any:
        """The callback's own answer: a value, or something to await."""
        params = json.loads(question.params or b"{}")
        context = ClientRequestContext(self.client, json.loads(question.id), params.get("_meta"))
        if question.method == "sampling/createMessage" and self.sampling is not None:
            return self.sampling(context, CreateMessageRequestParams.model_validate(params))
        if question.method == "elicitation/create" and self.elicitation is not None:
            params.setdefault("mode", "form")
            return self.elicitation(context, _ELICIT.validate_python(params))
        if question.method == "roots/list" and self.list_roots is not None:
            return self.list_roots(context)
        raise MCPError(METHOD_NOT_FOUND, f"this client has no answer to {question.method}")

    def news(self, method: str, params: str | None) -> list[Any]:
        """What the callbacks for a notification gave; things to await among them."""
        members = None if params is None else json.loads(params)
        given: list[Any] = []
        if method == "notifications/message" and self.logging is not None:
            given.append(self.logging(results.LoggingMessageNotificationParams.model_validate(members)))
        if self.messages is not None:
            given.append(self.messages(results.Notification(method=method, params=members)))
        return given


class Soon:
    """Runs callbacks as tasks of the running loop, and holds them until they are done."""

    def __init__(self, callbacks: Callbacks) -> None:
        self.callbacks = callbacks
        self.tasks: set[asyncio.Task[Any]] = set()

    def ask(self, question: _core.Question) -> None:
        self.start(self._answer(question))

    def hear(self, method: str, params: str | None) -> None:
        try:
            for given in self.callbacks.news(method, params):
                if inspect.isawaitable(given):
                    self.start(_heard(given))
        except Exception:
            logger.exception("a callback for %s failed", method)

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _answer(self, question: _core.Question) -> None:
        try:
            answer = self.callbacks.call(question)
            if inspect.isawaitable(answer):
                answer = await answer
        except BaseException as error:
            refuse(question, error)
            if not isinstance(error, Exception):
                raise
        else:
            give(question, answer)


def answer_now(callbacks: Callbacks, question: _core.Question) -> None:
    """Answers on this thread."""
    try:
        answer = callbacks.call(question)
        if inspect.isawaitable(answer):
            raise TypeError("a callback of SyncClient is an ordinary function, not a coroutine")
    except Exception as error:
        refuse(question, error)
    else:
        give(question, answer)


def give(question: _core.Question, answer: Any) -> None:
    """Answers with what a callback returned: a result's model, a dict, or ``ErrorData``."""
    told = wire(answer)
    if isinstance(answer, BaseModel) and "code" in type(answer).model_fields and "message" in type(answer).model_fields:
        data = told.get("data")
        question.refuse(told["code"], told["message"], None if data is None else json.dumps(data))
        return
    try:
        question.answer(json.dumps(told))
    except (TypeError, ValueError) as error:
        refuse(question, error)


def refuse(question: _core.Question, error: BaseException) -> None:
    """Tells the server why there is no answer."""
    if isinstance(error, MCPError):
        data = None if error.data is None else json.dumps(error.data)
        question.refuse(error.code, error.message, data)
    elif isinstance(error, ValidationError):
        question.refuse(INVALID_PARAMS, str(error))
    else:
        logger.error("the callback for %s failed", question.method, exc_info=error)
        question.refuse(INTERNAL_ERROR, f"the client's callback failed: {type(error).__name__}")


async def _heard(given: Any) -> None:
    try:
        await given
    except Exception:
        logger.exception("a callback for the server's news failed")
