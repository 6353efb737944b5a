"""Passes the server's requests and notifications to the user's callbacks.

Design constraint: a failing callback answers the request with an error, and never stops the client.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections import deque
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

_AT_ONCE = 256
"""Maximum number of concurrent callbacks for notifications."""
_HELD = 1024
_HELD_CHARACTERS = 4 << 20
_LITTLE = ("notifications/message", "notifications/progress")

_ELICIT: TypeAdapter[ElicitRequestParams] = TypeAdapter(ElicitRequestParams)


@dataclass(frozen=True)
class ClientRequestContext:
    """Context of a server's request, the first argument of a callback."""

    session: Any
    """The client."""
    request_id: Any
    meta: dict[str, Any] | None = None


@dataclass
class Callbacks:
    """The user's callbacks for requests and notifications of the server."""

    client: Any
    sampling: Callable[..., Any] | None = None
    elicitation: Callable[..., Any] | None = None
    list_roots: Callable[..., Any] | None = None
    logging: Callable[..., Any] | None = None
    messages: Callable[..., Any] | None = None
    has_warned: bool = False

    def capabilities(self, sampling_capabilities: Any) -> dict[str, Any]:
        """The capabilities to declare to the server, by the callbacks that exist."""
        told: dict[str, Any] = {"roots": self.list_roots is not None}
        if self.sampling is not None:
            told["sampling"] = wire(sampling_capabilities) or {}
        if self.elicitation is not None:
            told["elicitation"] = {"form": {}, "url": {}}
        return told

    @property
    def hears_notifications(self) -> bool:
        """Whether there is a callback for notifications."""
        return self.logging is not None or self.messages is not None

    def call(self, question: _core.Question) -> Any:
        """Calls the callback for a request. Returns a value or an awaitable."""
        params = json.loads(question.params or b"{}")
        if not isinstance(params, dict):
            raise MCPError(INVALID_PARAMS, f"the parameters of {question.method} are an object")
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
        """Calls the callbacks for a notification. Returns their values, which may be awaitables."""
        members = None if params is None else json.loads(params)
        given: list[Any] = []
        try:
            message = method == "notifications/message" and self.logging is not None
            logged = results.LoggingMessageNotificationParams.model_validate(members) if message else None
            told = results.Notification(method=method, params=members) if self.messages is not None else None
        except ValidationError:
            # The warning is logged once, because a server may send any number of such notifications.
            if not self.has_warned:
                self.has_warned = True
                logger.warning("the server's %s is not of the protocol's shape: such are passed over", method)
            return []
        if self.logging is not None and logged is not None:
            given.append(self.logging(logged))
        if self.messages is not None:
            given.append(self.messages(told))
        return given


class Later:
    """Queue of notifications whose callbacks have to wait for others. A full queue drops log and progress notifications
    first, the oldest of them."""

    def __init__(self) -> None:
        self.news: deque[tuple[str, str | None]] = deque()
        self.characters = 0
        self.has_dropped = False

    def put_notification(self, method: str, params: str | None) -> None:
        size = len(params or "")
        while self.news and (len(self.news) >= _HELD or self.characters + size > _HELD_CHARACTERS):
            if not self.has_dropped:
                self.has_dropped = True
                logger.warning("callbacks are slower than the server's news: the oldest went, which is said once")
            oldest = next((at for at, (held, _) in enumerate(self.news) if held in _LITTLE), None)
            if oldest is None and method in _LITTLE:
                return
            self.characters -= len(self.news[oldest or 0][1] or "")
            del self.news[oldest or 0]
        self.characters += size
        self.news.append((method, params))

    def take_notification(self) -> tuple[str, str | None]:
        method, params = self.news.popleft()
        self.characters -= len(params or "")
        return method, params


class Soon:
    """Runs callbacks as tasks of the running loop, and keeps references to the tasks until they are done."""

    def __init__(self, callbacks: Callbacks) -> None:
        self.callbacks = callbacks
        self.tasks: set[asyncio.Task[Any]] = set()
        self.hearing = 0
        self.later = Later()

    def ask(self, question: _core.Question) -> None:
        self.start(self._answer(question))

    def hear(self, method: str, params: str | None) -> None:
        if self.hearing >= _AT_ONCE or self.later.news:
            self.later.put_notification(method, params)
        else:
            self._call_back(method, params)

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def _call_back(self, method: str, params: str | None) -> None:
        try:
            for given in self.callbacks.news(method, params):
                if inspect.isawaitable(given):
                    self.hearing += 1
                    self.start(_await_callback(given)).add_done_callback(self._callback_done)
        except Exception:
            logger.exception("a callback for %s failed", method)

    def _callback_done(self, _: asyncio.Task[Any]) -> None:
        self.hearing -= 1
        while self.later.news and self.hearing < _AT_ONCE:
            self._call_back(*self.later.take_notification())

    async def _answer(self, question: _core.Question) -> None:
        try:
            answer = self.callbacks.call(question)
            if inspect.isawaitable(answer):
                answer = await answer
        except BaseException as error:
            refuse_question(question, error)
            if not isinstance(error, Exception):
                raise
        else:
            give_answer(question, answer)


def answer_now(callbacks: Callbacks, question: _core.Question) -> None:
    """Answers a request on this thread."""
    try:
        answer = callbacks.call(question)
        if inspect.isawaitable(answer):
            raise TypeError("a callback of SyncClient is an ordinary function, not a coroutine")
    except Exception as error:
        refuse_question(question, error)
    else:
        give_answer(question, answer)


def give_answer(question: _core.Question, answer: Any) -> None:
    """Answers a request with a callback's return value: a result's model, a dict, or ``ErrorData``."""
    told = wire(answer)
    if isinstance(answer, BaseModel) and "code" in type(answer).model_fields and "message" in type(answer).model_fields:
        data = told.get("data")
        question.refuse(told["code"], told["message"], None if data is None else json.dumps(data))
        return
    try:
        question.answer(json.dumps(told))
    except (TypeError, ValueError) as error:
        refuse_question(question, error)


def refuse_question(question: _core.Question, error: BaseException) -> None:
    """Answers a request with the error that an exception stands for."""
    if isinstance(error, MCPError):
        data = None if error.data is None else json.dumps(error.data)
        question.refuse(error.code, error.message, data)
    elif isinstance(error, ValidationError):
        question.refuse(INVALID_PARAMS, str(error))
    else:
        logger.error("the callback for %s failed", question.method, exc_info=error)
        question.refuse(INTERNAL_ERROR, f"the client's callback failed: {type(error).__name__}")


async def _await_callback(given: Any) -> None:
    try:
        await given
    except Exception:
        logger.exception("a callback for the server's news failed")
