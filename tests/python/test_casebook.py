"""The casebook's reports can be read, and its page lists each of them (casebook/README.md)."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "casebook"))

from case import CaseProblem, read_case, read_cases  # noqa: E402
from page import HEAD, page_of  # noqa: E402
from run import Answer, summary  # noqa: E402

LIMIT_S = 60.0

MINIMAL = """
report = "https://github.com/owner/name/issues/7"
reported = 2025-06-11
symptom = "s"
belief = "b"
cause = "c"
expected = ["session-per-call"]
[server]
packages = ["mcp==1.9.4"]
program = "server.py"
[client]
packages = ["mcp==1.9.4"]
program = "client.py"
arguments = ["sick"]
[control]
differs = "d"
client.arguments = []
"""


def written(folder: Path, text: str) -> Path:
    (folder / "case.toml").write_text(text)
    for name in ("server.py", "client.py"):
        (folder / name).touch()
    return folder


def test_the_page_lists_the_reports_of_the_casebook() -> None:
    page = (ROOT / "docs" / "casebook.md").read_text()
    assert page.startswith(HEAD)
    listed = re.findall(r"^### \[.*?\]\((\S+?)\)", page, re.MULTILINE)
    assert sorted(listed) == sorted(str(case.report) for case in read_cases())


def test_the_page_says_the_day_of_its_answers_and_what_is_named_without_the_cause() -> None:
    case = read_cases()[0]
    answer = Answer(case, control=dict.fromkeys(case.expected, "high"))
    page = page_of([answer], summary([answer]), date(2026, 1, 2))
    assert "\nAnswers of 2026-01-02: 0 of 1 reports were named; " in page
    assert f"nothing; in the control, which does not have the cause, it names `{min(case.expected)}`" in page
    written = (ROOT / "docs" / "casebook.md").read_text()
    assert len(re.findall(r"^Answers of \d{4}-\d\d-\d\d: \d+ of \d+ reports were named; ", written, re.MULTILINE)) == 1


def test_the_control_changes_only_the_members_that_it_names(tmp_path: Path) -> None:
    case = read_case(written(tmp_path, MINIMAL))
    (server, sick), (same, control) = case.programs(True), case.programs(False)
    assert (sick.arguments, control.arguments) == (["sick"], [])
    assert (server, sick.packages) == (same, control.packages)
    assert case.repository == "owner/name"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("session-per-call", "no-such-code", "no-such-code"),
        ("client.arguments = []", "", "changed server or client"),
        ("client.arguments = []", "other.arguments = []", "not other"),
        ('program = "client.py"', 'program = "absent.py"', "absent.py is missing"),
        ("reported", "reporter", "reported"),
        ("client.arguments = []", 'client.language = "cobol"', "language"),
        ("[server]", "[server", "can't be read"),
    ],
)
def test_a_wrong_case_is_refused_with_the_member(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(CaseProblem, match=message):
        read_case(written(tmp_path, MINIMAL.replace(old, new)))


def test_the_runner_refuses_a_case_that_does_not_exist() -> None:
    command = [sys.executable, str(ROOT / "casebook" / "run.py"), "no-such-case"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no-such-case/case.toml can't be read" in done.stderr
