"""The question to the user before an experiment starts a program or calls tools of another server."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel, Field

from mcpace.lab.errors import LabError
from mcpace.server.calls.context import Context
from mcpace.server.calls.elicitation import AcceptedElicitation

ANSWER_S = 600.0
"""Seconds that a user has for an answer."""


class Consent(BaseModel):
    """The form of the question."""

    allow: bool = Field(description="Allow this experiment")


class Refused(LabError):
    """The user did not allow the experiment, or cannot be asked."""

    code = "refused"


async def ask_user(context: Context[Any, Any], plan: str) -> None:
    """Asks the user to allow ``plan``, a sentence that begins with a verb.

    Raises :class:`Refused` where the user declines, or the client has no elicitation.
    """
    capabilities = context.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        raise Refused(
            f"mcpace would {plan}, and this client cannot ask its user (it has no elicitation): the user allows "
            "experiments in advance with `mcpace mcp --yes`"
        )
    try:
        async with asyncio.timeout(ANSWER_S):
            answer = await context.elicit(f"mcpace would {plan}. Allow it?", Consent)
    except TimeoutError:
        raise Refused(f"the user did not answer within {ANSWER_S / 60:.0f} minutes") from None
    if not (isinstance(answer, AcceptedElicitation) and answer.data.allow):
        raise Refused("the user did not allow the experiment")
