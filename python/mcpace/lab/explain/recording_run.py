"""Explanation of a saved recording: its operations as trials, its ledgers, and its findings.

A recording of a foreign client has traffic but no operations, so its findings belong to no call.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from mcpace import _core
from mcpace.lab import token_findings
from mcpace.lab.clients.trials_to_cases import NANOS, Facts, Trial, operation_cases
from mcpace.lab.errors import UsageProblem
from mcpace.lab.explain.result_sizes import result_tokens
from mcpace.lab.files import refuse_pipe
from mcpace.lab.inside.tool_time import tool_time
from mcpace.lab.machine import new_run
from mcpace.report.model.recording import (
    ExitFacts,
    MethodFacts,
    RecordingFacts,
    SerialCallFacts,
    SpanClock,
    SpanFacts,
)
from mcpace.report.model.run import Case, Operation, Run, Subject

TIMES = ("median", "slowest", "processor")
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
WORDS = {
    "tool-error": "the tool answered with an error",
    "failed": "no reason given",
    "open": "it had not returned when the recording ended",
}


def explain_recording(
    file: Path, behind: Sequence[Path] = (), beside: Sequence[Path] = (), spans: Path | None = None
) -> Run:
    """Explains a recording.

    ``behind`` are recordings made behind a gateway at the same time. ``beside`` are recordings of the same program
    under other conditions (such as a server with more tools), which are explained together with it. ``spans`` is a
    file of spans that programs reported meanwhile.

    Raises :class:`UsageProblem` where a file is not a recording, or has values that no instrument produces.
    """
    for path in (file, *behind, *beside, *([spans] if spans else [])):
        refuse_pipe(path)
    try:
        explained = _core.explained(
            [str(one) for one in (file, *beside)],
            behind=[str(one) for one in behind],
            spans=None if spans is None else str(spans),
        )
    except _core.Problem as problem:
        raise UsageProblem(str(problem)) from problem
    except UnicodeEncodeError as problem:
        raise UsageProblem(f"cannot read {problem.object}: its name is no UTF-8; give it another") from problem
    try:
        return _explained_run(explained, file, behind, beside)
    except ValidationError as problem:
        where = ".".join(str(part) for part in problem.errors()[0]["loc"]) or problem.title
        raise UsageProblem(f"{file} is no recording of ours: no instrument sees such a number ({where})") from problem


def explain_spans(file: Path) -> Run:
    """Explains a file of spans alone: its calls are those that MCP servers tell of.

    Raises :class:`UsageProblem` where the file is not one of spans, or none of its spans is a call.
    """
    refuse_pipe(file)
    try:
        explained = _core.explained_spans(str(file))
    except _core.Problem as problem:
        raise UsageProblem(str(problem)) from problem
    except UnicodeEncodeError as problem:
        raise UsageProblem(f"cannot read {problem.object}: its name is no UTF-8; give it another") from problem
    if not explained.methods:
        raise UsageProblem(
            f"{file} has spans, {explained.events:,} of them, and none is a call of an MCP server: a span of a server "
            "that names tools/call, or its POST to /mcp. Join the spans to recorded calls: mcpace explain RECORDING "
            f"--spans {file}"
        )
    run = new_run("recording", {"spans": file.name})
    run.cases = _explained_cases(explained, file.name)
    run.recording = RecordingFacts(
        events=explained.events, lost=explained.lost, spans=_span_facts(explained), traces_only=True
    )
    return run


def _explained_run(explained: _core.Explained, file: Path, behind: Sequence[Path], beside: Sequence[Path]) -> Run:
    options = {"recording": file.name, "behind": [one.name for one in behind], "beside": [one.name for one in beside]}
    run = new_run("recording", options)
    run.cases = _explained_cases(explained, file.name)
    methods = [_method_facts(one) for one in explained.methods]
    sizes = result_tokens(file, explained.events)
    for method in methods:
        if method.method == "tools/call" and method.name is not None:
            method.result_tokens = sizes.get(method.name)
    largest = {tool: found.largest for tool, found in sizes.items() if found.largest is not None}
    token_findings.add_result_findings(run.cases, largest, [tool for tool, found in sizes.items() if found.cut])
    run.recording = RecordingFacts(
        events=explained.events,
        lost=explained.lost,
        cut_off=explained.partial,
        methods=methods,
        starts_s=explained.starts,
        exits=[_exit_facts(one) for one in explained.exits],
        spans=_span_facts(explained),
        serial_calls=_serial_calls(explained.serial_calls),
    )
    return run


def _explained_cases(explained: _core.Explained, name: str) -> list[Case]:
    """A case for each operation, and one for each tool that was looked into."""
    # The core makes waterfalls for the calls that are shown: the slowest warm call of each operation.
    waterfalls = {shape["call"]: shape for shape in explained.waterfalls}
    tools = [sums["tool"] for sums in explained.tool_times]
    by_tool: dict[str | None, list[Trial]] = {tool: [] for tool in [None, *tools]}
    for operation in OPERATIONS:
        for trial in _operation_trials(explained, operation):
            tool = explained.tool(trial.call) if operation == "call" and trial.call is not None else None
            by_tool[tool if tool in by_tool else None].append(trial)

    def facts_of(tool: str | None) -> Facts:
        label = tool if tool is not None and len(tools) > 1 else "recording"
        return Facts(Subject(sdk=label), name, tool, by_tool[tool], explained, waterfalls)

    others = facts_of(None)
    operations = [operation for operation in OPERATIONS if any(one.operation == operation for one in others.trials)]
    has_calls = any(by_tool[tool] for tool in tools)
    cases = operation_cases(others, operations or ["call"]) if operations or not has_calls else []
    for tool in tools:
        # Findings outside all calls are reported once.
        [case] = operation_cases(facts_of(tool), ["call"], outside=not cases)
        case.inside = tool_time(explained, tool)
        cases.append(case)
    return cases


def _span_facts(explained: _core.Explained) -> SpanFacts | None:
    """How a file of spans was joined; ``None`` where none was read."""
    if explained.span_counts is None:
        return None
    unended, impossible, cut_off = explained.span_counts
    told = explained.spans
    clocks = [
        SpanClock(
            service=clock["service"],
            shift_s=clock["shift_ns"] / NANOS,
            error_s=None if clock["error_ns"] is None else clock["error_ns"] / NANOS,
            is_contradictory=clock["is_contradictory"],
        )
        for clock in told["clocks"]
    ]
    timed = sum(sums["spans"] - sums["traced_spans"] for sums in explained.tool_times)
    return SpanFacts.model_validate(
        {**told, "clocks": clocks, "timed": timed, "unended": unended, "impossible": impossible, "cut_off": cut_off}
    )


def _exit_facts(ended: dict[str, Any]) -> ExitFacts:
    took = ended["only_call_ns"]
    return ExitFacts.model_validate({**ended, "only_call_s": None if took is None else took / NANOS})


def _serial_calls(serial: dict[str, int]) -> SerialCallFacts | None:
    if not serial["calls"]:
        return None
    seconds = {f"{key}_s": serial[f"{key}_ns"] / NANOS for key in ("time", "at_once")}
    return SerialCallFacts.model_validate({"calls": serial["calls"], **seconds})


def _method_facts(explained: dict[str, Any]) -> MethodFacts:
    seconds = {f"{key}_s": None if explained[f"{key}_ns"] is None else explained[f"{key}_ns"] / NANOS for key in TIMES}
    return MethodFacts.model_validate({**explained, **seconds})


def _operation_trials(explained: _core.Explained, operation: Operation) -> list[Trial]:
    trials = []
    for call, seconds, ended, message in explained.trials(operation):
        if ended == "ok":
            trials.append(Trial(operation, seconds, call))
        else:
            trials.append(Trial(operation, None, call, f"{operation}: {message or WORDS[ended]}"))
    return trials
