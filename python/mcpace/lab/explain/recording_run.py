"""Explanation of a saved recording: its operations as trials, its ledgers, and its findings.

A recording of a foreign client has traffic but no operations, so its findings belong to no call.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from mcpace import _core
from mcpace.lab.clients.trials_to_cases import NANOS, Facts, Trial, operation_cases
from mcpace.lab.errors import UsageProblem
from mcpace.lab.machine import new_run
from mcpace.report.model.recording import ExitFacts, MethodFacts, RecordingFacts, SerialCallFacts
from mcpace.report.model.run import Operation, Run, Subject

TIMES = ("median", "slowest", "processor")
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
WORDS = {
    "tool-error": "the tool answered with an error",
    "failed": "no reason given",
    "open": "it had not returned when the recording ended",
}


def explain_recording(file: Path, behind: Sequence[Path] = (), beside: Sequence[Path] = ()) -> Run:
    """Explains a recording.

    ``behind`` are recordings made behind a gateway at the same time. ``beside`` are recordings of the same program
    under other conditions (such as a server with more tools), which are explained together with it.

    Raises :class:`UsageProblem` where a file is not a recording, or has values that no instrument produces.
    """
    try:
        explained = _core.explained([str(one) for one in (file, *beside)], behind=[str(one) for one in behind])
    except _core.Problem as problem:
        raise UsageProblem(str(problem)) from problem
    except UnicodeEncodeError as problem:
        raise UsageProblem(f"cannot read {problem.object}: its name is no UTF-8; give it another") from problem
    try:
        return _explained_run(explained, file, behind, beside)
    except ValidationError as problem:
        where = ".".join(str(part) for part in problem.errors()[0]["loc"]) or problem.title
        raise UsageProblem(f"{file} is no recording of ours: no instrument sees such a number ({where})") from problem


def _explained_run(explained: _core.Explained, file: Path, behind: Sequence[Path], beside: Sequence[Path]) -> Run:
    options = {"recording": file.name, "behind": [one.name for one in behind], "beside": [one.name for one in beside]}
    run = new_run("recording", options)
    facts = Facts(Subject(sdk="recording"), file.name, None)
    facts.explained = explained
    # The core makes waterfalls for the calls that are shown: the slowest warm call of each operation.
    facts.waterfalls = {shape["call"]: shape for shape in explained.waterfalls}
    by_operation = {operation: _operation_trials(explained, operation) for operation in OPERATIONS}
    facts.trials = [trial for trials in by_operation.values() for trial in trials]
    run.cases = operation_cases(facts, [operation for operation, trials in by_operation.items() if trials] or ["call"])
    run.recording = RecordingFacts(
        events=explained.events,
        lost=explained.lost,
        cut_off=explained.partial,
        methods=[_method_facts(one) for one in explained.methods],
        starts_s=explained.starts,
        exits=[_exit_facts(one) for one in explained.exits],
        serial_calls=_serial_calls(explained.serial_calls),
    )
    return run


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
