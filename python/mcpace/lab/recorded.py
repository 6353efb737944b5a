"""A saved recording, explained: its operations as trials, its ledgers, and the causes that it proves.

A recording of a foreign client has no operations, only traffic; what it proves then is told of no call.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from mcpace import _core
from mcpace.lab.errors import UsageProblem
from mcpace.lab.fold import Facts, Trial, cases
from mcpace.lab.runs import new_run
from mcpace.report.run import Operation, Run, Subject
from mcpace.report.run_recording import RecordingFacts

OPERATIONS: tuple[Operation, ...] = get_args(Operation)


def explain(file: Path, behind: Sequence[Path] = (), beside: Sequence[Path] = ()) -> Run:
    """Explains a recording; ``behind`` are those that were made behind a gateway meanwhile, ``beside`` those of the
    same program under other circumstances (a server with more tools), which are taken as one with it.

    Raises :class:`UsageProblem` where one of the files is no recording.
    """
    try:
        told = _core.explained([str(one) for one in (file, *beside)], behind=[str(one) for one in behind])
    except _core.Problem as problem:
        raise UsageProblem(str(problem)) from problem
    asked = {"recording": file.name, "behind": [one.name for one in behind], "beside": [one.name for one in beside]}
    run = new_run("recording", asked)
    facts = Facts(Subject(sdk="recording"), file.name, None)
    facts.ledgers, facts.findings = told["ledgers"], told["findings"]
    # Those that are shown: of each operation the slowest warm call, here as there.
    facts.waterfalls = {shape["call"]: shape for shape in told["waterfalls"]}
    facts.trials = [trial for ledger in facts.ledgers if (trial := _trial(ledger)) is not None]
    seen = [operation for operation in OPERATIONS if any(trial.operation == operation for trial in facts.trials)]
    run.cases = cases(facts, seen or ["call"])
    run.recording = RecordingFacts(events=told["events"], lost=told["lost"], cut_off=told["partial"])
    return run


def _trial(ledger: dict[str, Any]) -> Trial | None:
    if ledger["operation"] not in OPERATIONS:
        return None
    trial = Trial(ledger["operation"], call=ledger["call"])
    match ledger["outcome"]:
        case "ok":
            trial.seconds = (ledger["end_ns"] - ledger["start_ns"]) / 1e9
        case "tool-error":
            trial.failure = f"{trial.operation}: the tool answered with an error"
        case {"failed": why}:
            trial.failure = f"{trial.operation}: {why}"
        case _:
            trial.failure = f"{trial.operation}: it had not returned when the recording ended"
    return trial
