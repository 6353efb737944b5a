"""A saved recording, explained: its operations as trials, its ledgers, and the causes that it proves.

A recording of a foreign client has no operations, only traffic; what it proves then is told of no call.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from mcpace import _core
from mcpace.lab.clients.fold import NANOS, Facts, Trial, cases
from mcpace.lab.errors import UsageProblem
from mcpace.lab.machine import new_run
from mcpace.report.model.recording import MethodFacts, RecordingFacts
from mcpace.report.model.run import Operation, Run, Subject

TIMES = ("median", "slowest")
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
WORDS = {
    "tool-error": "the tool answered with an error",
    "failed": "no reason given",
    "open": "it had not returned when the recording ended",
}


def explain(file: Path, behind: Sequence[Path] = (), beside: Sequence[Path] = ()) -> Run:
    """Explains a recording; ``behind`` are those that were made behind a gateway meanwhile, ``beside`` those of the
    same program under other circumstances (a server with more tools), which are taken as one with it.

    Raises :class:`UsageProblem` where one of the files is no recording, or holds what nothing measures.
    """
    try:
        told = _core.explained([str(one) for one in (file, *beside)], behind=[str(one) for one in behind])
    except _core.Problem as problem:
        raise UsageProblem(str(problem)) from problem
    except UnicodeEncodeError as problem:
        raise UsageProblem(f"cannot read {problem.object}: its name is no UTF-8; give it another") from problem
    try:
        return _run(told, file, behind, beside)
    except ValidationError as problem:
        where = ".".join(str(part) for part in problem.errors()[0]["loc"]) or problem.title
        raise UsageProblem(f"{file} is no recording of ours: no instrument sees such a number ({where})") from problem


def _run(told: _core.Explained, file: Path, behind: Sequence[Path], beside: Sequence[Path]) -> Run:
    asked = {"recording": file.name, "behind": [one.name for one in behind], "beside": [one.name for one in beside]}
    run = new_run("recording", asked)
    facts = Facts(Subject(sdk="recording"), file.name, None)
    facts.told = told
    # Those that are shown: of each operation the slowest warm call, here as there.
    facts.waterfalls = {shape["call"]: shape for shape in told.waterfalls}
    by_operation = {operation: _trials(told, operation) for operation in OPERATIONS}
    facts.trials = [trial for trials in by_operation.values() for trial in trials]
    run.cases = cases(facts, [operation for operation, trials in by_operation.items() if trials] or ["call"])
    run.recording = RecordingFacts(
        events=told.events,
        lost=told.lost,
        cut_off=told.partial,
        methods=[_method(one) for one in told.methods],
        starts_s=told.starts,
    )
    return run


def _method(told: dict[str, Any]) -> MethodFacts:
    seconds = {f"{key}_s": None if told[f"{key}_ns"] is None else told[f"{key}_ns"] / NANOS for key in TIMES}
    return MethodFacts.model_validate({**told, **seconds})


def _trials(told: _core.Explained, operation: Operation) -> list[Trial]:
    trials = []
    for call, seconds, ended, message in told.trials(operation):
        if ended == "ok":
            trials.append(Trial(operation, seconds, call))
        else:
            trials.append(Trial(operation, None, call, f"{operation}: {message or WORDS[ended]}"))
    return trials
