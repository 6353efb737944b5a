"""End-to-end tests on real releases: the regression of python-sdk #1274 is found, named, and bisected.

Tests check the sent requests and mcpace's findings, never times.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcpace import _core
from mcpace.lab import targets
from mcpace.lab.clients import measure
from mcpace.lab.clients.plan import Plan, Settings
from mcpace.lab.clients.run_clients import run_clients
from mcpace.lab.compare import bisect
from mcpace.lab.progress import Silent
from mcpace.report.model.run import Case, Run
from support.commands import closed_port

HOLD_S = 0.3
SETTINGS = Settings(trials=2, hold_s=HOLD_S, time_limit_s=10.0)

pytestmark = pytest.mark.network


def codes(case: Case) -> set[str]:
    return {finding.code for finding in case.findings}


def cases(run: Run, version: str, target: str) -> dict[str, Case]:
    found = [case for case in run.cases if case.subject.version == version and case.target == target]
    return {case.operation: case for case in found}


class Steps(Silent):
    """Collects the announced steps."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def step(self, what: str) -> None:
        self.told.append(what)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    recordings = tmp_path_factory.mktemp("recordings")
    settings = Settings(trials=2, hold_s=HOLD_S, time_limit_s=10.0, keep_recordings=recordings)
    places = tuple(targets.parse_target(f"profile:{name}") for name in ("simple", "notion", "github"))
    steps = Steps()
    result = run_clients(Plan(("python@1.11.0", "python@1.12.1"), places, settings), steps)
    result.options["folder"] = str(recordings)
    result.options["steps"] = steps.told
    return result


def test_every_case_was_measured(run: Run) -> None:
    assert not run.partial
    assert {case.error for case in run.cases} == {None}
    assert all(len(case.trials_s) == 2 for case in run.cases)
    assert len(run.cases) == 2 * (3 + 4 + 3)
    assert run.versions["python@1.12.1"]["mcp"] == "1.12.1"


def test_no_subject_always_comes_after_another(run: Run) -> None:
    turns = [tuple(step.split(" · ")[1:3]) for step in run.options["steps"] if step.startswith("profile:simple")]
    subjects = [subject for _, subject in dict.fromkeys(turns)]
    assert subjects == ["python@1.11.0", "python@1.12.1", "python@1.12.1", "python@1.11.0"]


def test_the_regression_is_named_where_it_is_and_nowhere_else(run: Run) -> None:
    for operation in ("connect", "list", "call"):
        assert "duplicate-request" in codes(cases(run, "1.12.1", "profile:notion")[operation])
    for case in run.cases:
        if (case.subject.version, case.target) != ("1.12.1", "profile:notion"):
            assert "duplicate-request" not in codes(case)
            assert all(finding.cost_s < 0.05 for finding in case.findings)


def test_the_finding_says_that_the_tool_ran_twice_and_proves_it(run: Run) -> None:
    call = cases(run, "1.12.1", "profile:notion")["call"]
    finding = next(finding for finding in call.findings if finding.code == "duplicate-request")
    assert (finding.calls, finding.of_calls, finding.severity) == (2, 2, "high")
    assert finding.context["executions"] >= 1
    assert finding.cost_requests == 1
    # The cost is the hold: the stream stayed open that long, whatever else the machine was doing.
    assert finding.cost_s >= HOLD_S * 0.9
    assert {item.role for item in finding.evidence} >= {"first-request", "repeated-request"}
    assert "1.14.0" in finding.advice


def test_ledgers_add_up_to_the_mean(run: Run) -> None:
    for case in run.cases:
        if case.ledger_s is not None and case.summary is not None:
            assert case.ledger_s.total() == pytest.approx(case.summary.mean_s, abs=1e-6)


def test_a_kept_recording_explains_itself_again_and_holds_no_secret(run: Run) -> None:
    name = run.recordings["python@1.12.1 × profile:notion"]
    recording = _core.Recording.load(str(Path(run.options["folder"]) / name))
    assert not recording.partial
    assert "duplicate-request" in {finding["code"] for finding in recording.findings()}
    text = str(recording.events())
    assert "[redacted" in text
    for secret in ("code_verifier=", "access_token", "authorization', '"):
        assert secret in text
    for value in re.findall(r"code_verifier=(.{9})|\"access_token\":\"(.{9})|'authorization', 'Bearer (.{9})", text):
        assert "".join(value) == "[redacted"


def test_a_target_that_nobody_listens_at_is_named_and_not_our_recorder() -> None:
    port = closed_port()
    place = targets.parse_target(f"http://127.0.0.1:{port}/mcp")
    made = run_clients(Plan(("python@1.12.1",), (place,), SETTINGS), Silent())
    for one in made.cases:
        assert one.error is not None
        assert one.error.startswith(f"connect: could not connect to 127.0.0.1:{port}: ")


def test_the_run_reads_back_as_it_was_written(run: Run) -> None:
    assert Run.from_json(run.to_json()) == run


def test_bisect_finds_the_release_around_one_that_cannot_run() -> None:
    settings = Settings(trials=2, hold_s=HOLD_S, time_limit_s=5.0)
    result = bisect.run("python", "1.11", "1.12.2", targets.parse_target("profile:notion"), settings, Silent())
    assert (result.first_bad, result.untestable) == ("1.12.1", ["1.12.0"])
    assert result.bisection is not None
    assert result.bisection.criterion == "bad shows duplicate-request"
    assert result.bisection.neighbour == "1.11.0"


def test_bisect_the_other_way_finds_the_release_that_mended_it() -> None:
    target = targets.parse_target("profile:notion")
    result = bisect.run("python", "1.14.0", "1.13.0", target, SETTINGS, Silent())
    assert (result.first_good, result.first_bad, result.untestable) == ("1.14.0", None, [])


@pytest.mark.parametrize("name", ["simple", "notion", "github"])
def test_our_own_client_finds_nothing_wrong_with_healthy_targets(name: str) -> None:
    result = measure.run(targets.parse_target(f"profile:{name}"), Settings(trials=3, hold_s=HOLD_S), Silent())
    assert [case.operation for case in result.cases] == ["connect", "list", "call"]
    assert all(len(case.trials_s) == 3 and not case.error for case in result.cases)
    assert {code for case in result.cases for code in codes(case)} == set()


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
def test_our_own_client_speaks_each_revision(revision: str) -> None:
    result = measure.run(targets.parse_target("profile:simple"), Settings(trials=1), Silent(), revision=revision)
    assert all(case.trials_s for case in result.cases)


def test_a_servers_own_timing_splits_the_server() -> None:
    settings = Settings(trials=2, faults=("tool=20ms", "dispatch=5ms"))
    result = measure.run(targets.parse_target("profile:simple"), settings, Silent())
    call = next(case for case in result.cases if case.operation == "call")
    assert call.ledger_s is not None and call.ledger_s.server_split is not None
    split = call.ledger_s.server_split
    assert split.service >= 0.020 and split.dispatch >= 0.005
    assert split.service + split.dispatch + split.transport <= call.ledger_s.server + call.ledger_s.response
