"""The parts of a Run that say how much of a model's context a server takes.

Design constraint: data only. A count of tokens belongs to one encoding, which the Run's options name
(``encoding``). Without a tokenizer the members are absent.
"""

from __future__ import annotations

from typing import Literal

from mcpace.report.model.base import Model, Whole


class ToolTokens(Model):
    """One tool of a listing."""

    name: str
    tokens: Whole
    """Tokens of the name, the description and the input schema, which hosts give to the model."""
    description: Whole = 0
    """Tokens of the description alone."""
    input_schema: Whole = 0
    """Tokens of the input schema alone."""
    output_schema: Whole = 0
    """Tokens of the output schema, which most hosts don't give to the model."""
    bytes: Whole
    """Size of the whole entry as JSON, in bytes."""


class ResultTokens(Model):
    """The results of one tool in a recording."""

    results: Whole
    cut: Whole = 0
    """Results whose whole text was not recorded. Their tokens are those of the recorded part."""
    counted: Whole
    """Results whose tokens were counted, the largest among them."""
    median: Whole | None = None
    """Tokens of the median result among the counted ones; a lower bound where results were cut."""
    largest: Whole | None = None
    """Tokens of the counted result that has most; a lower bound where results were cut."""
    median_bytes: Whole | None = None
    """Size of the median reply, over all results."""
    largest_bytes: Whole | None = None


class ContextTokens(Model):
    """Tokens of everything else that a server gives to a host."""

    instructions: Whole = 0
    """Tokens of the server's instructions, which many hosts give to the model."""
    prompts: Whole = 0
    """Tokens of the list of its prompts as JSON."""
    resources: Whole = 0
    """Tokens of the lists of its resources and their templates as JSON. Hosts give them to the model only when asked
    to."""


class ComparedResult(Model):
    """Tokens of a tool's result on both sides of a comparison."""

    target: str
    """The second side's target."""
    tool: str
    base_tokens: Whole
    now_tokens: Whole


class TokenLimit(Model):
    """A limit of a gate on tokens, and the value that was held against it."""

    subject: Literal["listing", "result"]
    """``listing``: the tools of one server. ``result``: the largest result of a tool."""
    target: str
    limit: Whole
    value: Whole | None = None
    """Absent where nothing was measured; the limit is not met then."""
    at_least: bool = False
    """Whether the value is a lower bound, since a recording has only a part of the text. The limit is not met then."""
    largest: str = ""
    """The tool that takes most of a listing, or that gave the largest result."""

    @property
    def is_met(self) -> bool:
        """Whether a value was measured, and is within the limit."""
        return self.value is not None and self.value <= self.limit and not self.at_least
