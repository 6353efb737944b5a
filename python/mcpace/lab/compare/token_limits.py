"""Limits of a gate on tokens: the tools of one server, and the largest result of a tool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcpace.lab import tokens
from mcpace.lab.clients import measure
from mcpace.lab.clients.plan import Settings
from mcpace.lab.machine import new_run
from mcpace.lab.progress import Progress
from mcpace.lab.targets import Target
from mcpace.report.model.run import Case, Run
from mcpace.report.model.tokens import TokenLimit


@dataclass(frozen=True)
class TokenLimits:
    """The limits that a user gave."""

    listing: int | None = None
    """Most tokens of one server's tools."""
    result: int | None = None
    """Most tokens of one result."""

    def __bool__(self) -> bool:
        return self.listing is not None or self.result is not None

    def check(self, run: Run, saved: Run | None = None) -> None:
        """Holds the measured tokens of ``run`` against the limits, and those of results that ``saved`` read from a
        recording. A limit without a measured value is not met.
        """
        if self.listing is not None:
            run.limits += list(_listing_limits(run.cases, self.listing))
        if self.result is not None:
            run.limits += list(_recorded_limits(saved or run, self.result) or _result_limits(run.cases, self.result))

    def run(self, target: Target, settings: Settings, progress: Progress, revision: str | None) -> Run:
        """Measures ``target`` and holds its tokens against the limits; there is no other side.

        Raises :class:`LabError` where the target can't be reached, or tokens can't be counted.
        """
        tokens.require_tokenizer()
        result = measure.run(target, settings, progress, revision=revision)
        result.kind = "gate"
        self.check(result)
        return result

    def run_of_file(self, saved: Run) -> Run:
        """Holds the tokens of a saved run against the limits."""
        result = new_run("gate", {})
        result.cases, result.machine, result.started = saved.cases, saved.machine, saved.started
        result.partial = saved.partial
        self.check(result, saved)
        return result


def _listing_limits(cases: list[Case], limit: int) -> Iterator[TokenLimit]:
    listings = [case for case in cases if case.operation == "list"]
    for case in listings:
        largest = max(case.tools or (), key=lambda tool: tool.tokens, default=None)
        yield TokenLimit(
            subject="listing",
            target=case.target,
            limit=limit,
            value=case.listing_tokens,
            largest=largest.name if largest is not None else "",
        )
    if not listings:
        yield TokenLimit(subject="listing", target="", limit=limit)


def _result_limits(cases: list[Case], limit: int) -> Iterator[TokenLimit]:
    calls = [case for case in cases if case.operation == "call"]
    for case in calls:
        yield TokenLimit(
            subject="result", target=case.target, limit=limit, value=case.result_tokens, largest=case.tool or ""
        )
    if not calls:
        yield TokenLimit(subject="result", target="", limit=limit)


def _recorded_limits(run: Run, limit: int) -> list[TokenLimit]:
    """The limits of a recording's results, for each tool whose results were counted."""
    name = str(run.options.get("recording", ""))
    sized = [(one.name or "", one.result_tokens) for one in run.recording.methods] if run.recording is not None else []
    return [
        TokenLimit(
            subject="result", target=name, limit=limit, value=found.largest, at_least=found.cut > 0, largest=tool
        )
        for tool, found in sized
        if found is not None
    ]
