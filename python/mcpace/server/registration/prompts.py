"""Prompts: functions whose parameters a user fills in, and whose values become messages.

A function returns a string, a content block, a picture or sound, a :class:`Message`, a dictionary of one, or a list of
these, as in the official SDK. Arguments are converted from strings to the parameters' types.

Design constraint: arguments are strings on the wire for all types of parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json

from mcpace.server.auth.guards import UNGUARDED, Guards
from mcpace.server.calls.content import media_block, text_of
from mcpace.server.calls.invocation import call_function
from mcpace.server.calls.media import Audio, Image
from mcpace.server.errors import InputRequired, RegistrationError, is_protocol_error
from mcpace.server.registration.injection import find_context
from mcpace.server.registration.signature import Arguments, arguments_of, is_async, name_of
from mcpace.types import (
    ContentBlock,
    InputRequiredResult,
    PromptArgument,
    TextContent,
    content_block,
    is_content_type,
    is_kind,
    wire,
)


class Message(BaseModel):
    """One message of a prompt. ``content`` may be a string, a block, or an :class:`Image` or :class:`Audio`."""

    model_config = ConfigDict(defer_build=True)

    role: Literal["user", "assistant"]
    content: ContentBlock

    def __init__(self, content: str | ContentBlock | Image | Audio | Any, **kwargs: Any) -> None:
        if isinstance(content, str):
            content = TextContent(text=content)
        elif (block := media_block(content)) is not None:
            content = block
        super().__init__(content=content, **kwargs)


class UserMessage(Message):
    """A message with the role of the user."""

    role: Literal["user", "assistant"] = "user"

    def __init__(self, content: str | ContentBlock | Image | Audio | Any, **kwargs: Any) -> None:
        super().__init__(content, **kwargs)


class AssistantMessage(Message):
    """A message with the role of the model."""

    role: Literal["user", "assistant"] = "assistant"

    def __init__(self, content: str | ContentBlock | Image | Audio | Any, **kwargs: Any) -> None:
        super().__init__(content, **kwargs)


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """A registered prompt. Make one with :meth:`from_function`, or with the decorator ``@server.prompt()``."""

    fn: Callable[..., Any]
    name: str
    title: str | None
    description: str
    arguments: list[PromptArgument]
    taken: Arguments
    is_async: bool
    context_kwarg: str | None
    icons: Sequence[Any] | None = None
    guards: Guards = UNGUARDED
    """The guards of the prompt."""

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Any] | None = None,
        context_kwarg: str | None = None,
        guards: Guards = UNGUARDED,
    ) -> Prompt:
        """A prompt of a function."""
        called = name or name_of(fn)
        if called == "<lambda>":
            raise RegistrationError("You must provide a name for lambda functions")
        context = context_kwarg or find_context(fn)
        taken = arguments_of(fn, skip=[context] if context else [])
        required = taken.schema.get("required", ())
        arguments = [
            PromptArgument(name=argument, description=described.get("description"), required=argument in required)
            for argument, described in taken.schema.get("properties", {}).items()
        ]
        return cls(
            fn=fn,
            name=called,
            title=title,
            description=description or fn.__doc__ or "",
            arguments=arguments,
            taken=taken,
            is_async=is_async(fn),
            context_kwarg=context,
            icons=icons,
            guards=guards,
        )

    def listed(self) -> dict[str, Any]:
        """The entry of the prompt in lists, in wire names."""
        entry = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "arguments": wire(self.arguments),
            "icons": wire(self.icons),
        }
        return {key: value for key, value in entry.items() if value is not None}

    async def render(self, arguments: Mapping[str, Any] | None, context: Any) -> list[Message] | InputRequiredResult:
        """Renders the messages. Raises ``ValueError`` if a required argument is missing, or the function fails."""
        given = dict(arguments or {})
        missing = {one.name for one in self.arguments if one.required} - given.keys()
        if missing:
            raise ValueError(f"Missing required arguments: {missing}")
        try:
            value = await self.call(given, context)
            if is_kind(type(value), InputRequiredResult, "InputRequiredResult"):
                return InputRequiredResult.model_validate(value)
            return messages_of(value)
        except InputRequired as questions:
            return questions.result
        except Exception as error:
            if is_protocol_error(error):
                raise
            raise ValueError(f"Error rendering prompt {self.name}") from error

    async def call(self, arguments: Mapping[str, Any], context: Any) -> Any:
        """Calls the function with the arguments converted to its types."""
        known = {name: value for name, value in arguments.items() if name in self.taken.names}
        if len(known) != len(arguments):
            raise TypeError(f"prompt {self.name!r} takes no argument {sorted(arguments.keys() - known.keys())}")
        instance = self.taken.model.model_validate(known)
        keywords = {parameter: getattr(instance, field) for field, parameter in self.taken.parameters.items()}
        if self.context_kwarg is not None:
            keywords[self.context_kwarg] = context
        return await call_function(self.fn, self.is_async, keywords)


def messages_of(value: Any) -> list[Message]:
    """Converts the value of a prompt's function to messages."""
    return [_message(one) for one in (value if isinstance(value, list | tuple) else [value])]


class Messages(list[Message]):
    """The messages of a rendered prompt with its own description or metadata."""

    def __init__(self, messages: Sequence[Message], description: str | None, meta: dict[str, Any] | None) -> None:
        super().__init__(messages)
        self.description = description
        self.meta = meta


def messages_json(description: str | None, messages: Sequence[Message]) -> bytes:
    """A rendered prompt as JSON, without the members that the transport adds."""
    told: dict[str, Any] = {"description": description, "messages": [wire(message) for message in messages]}
    if isinstance(messages, Messages):
        more = {"description": messages.description, "_meta": messages.meta}
        told = {key: value for key, value in (told | more).items() if value is not None}
    return to_json(told)


def messages_length(description: str, messages: Any) -> int:
    """The length in bytes of a rendered prompt, as a client gets it; 0 for questions to the client."""
    return 0 if isinstance(messages, InputRequiredResult) else len(messages_json(description, messages)) - len(b"{}")


def _message(value: Any) -> Message:
    if isinstance(value, Message):
        return value
    if is_kind(type(value), Message, "Message", "UserMessage", "AssistantMessage"):
        return Message(content_block(value.content), role=value.role)
    if isinstance(value, dict):
        return UserMessage.model_validate(value)
    if is_content_type(type(value)):
        return UserMessage(content_block(value))
    if isinstance(value, str) or media_block(value) is not None:
        return UserMessage(value)
    return UserMessage(text_of(value))
