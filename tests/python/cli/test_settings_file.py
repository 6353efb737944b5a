"""Options from ``mcpace.toml`` and ``pyproject.toml``."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mcpace.cli import commands
from mcpace.lab.clients import measure as lab_measure
from mcpace.lab.clients.plan import Settings
from mcpace.lab.errors import LabError
from mcpace.lab.targets import Target
from support.commands import Ended, run

DONE, USAGE = 0, 2
LEAST = ("--calls", "1", "--json")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The folder of a repository."""
    folder = tmp_path / "repository"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", folder], check=True, timeout=60)
    return folder


def measure(folder: Path, *words: str) -> Ended:
    return run("measure", "profile:simple", *LEAST, *words, folder=folder)


def trials(ended: Ended) -> int:
    assert ended.code == DONE, ended.stderr
    return len(json.loads(ended.stdout)["cases"][0]["trials_s"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mcpace.toml", "[measure]\ntrials = 2\n"),
        ("pyproject.toml", "[project]\nname = 'x'\n[tool.mcpace.measure]\ntrials = 2\n"),
    ],
)
def test_a_file_gives_options_which_the_command_line_overrules(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    ended = measure(tmp_path)
    assert trials(ended) == 2
    assert ended.sentence() == f"options from {tmp_path / name}: trials"
    overruled = measure(tmp_path, "--trials", "3")
    assert (trials(overruled), overruled.stderr) == (3, "")
    quiet = measure(tmp_path, "--quiet")
    assert (trials(quiet), quiet.stderr) == (2, "")


@pytest.mark.parametrize(
    ("text", "words", "may_run_fewer"),
    [("", [], True), ("", ["--trials", "5"], False), ("[measure]\ntrials = 5\n", [], False)],
)
def test_a_number_of_trials_that_the_user_set_is_kept_where_a_start_takes_long(
    text: str, words: list[str], may_run_fewer: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Settings] = []

    def take_settings(target: Target, settings: Settings, *_: object, **__: object) -> None:
        taken.append(settings)
        raise LabError("enough is known")

    (tmp_path / "mcpace.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lab_measure, "run", take_settings)
    commands.app(["measure", "profile:simple", *words], standalone_mode=False)
    assert [(one.trials, one.may_run_fewer) for one in taken] == [(5, may_run_fewer)]


def test_a_folder_takes_the_file_of_its_repository(repository: Path) -> None:
    (repository / "mcpace.toml").write_text("[measure]\ntrials = 2\n")
    inner = repository / "a" / "b"
    inner.mkdir(parents=True)
    assert trials(measure(inner)) == 2
    (inner / "pyproject.toml").write_text("[tool.mcpace.measure]\ntrials = 3\n")
    assert trials(measure(inner)) == 3


def test_a_file_above_the_repository_is_not_read(repository: Path) -> None:
    (repository.parent / "mcpace.toml").write_text("[measure]\ntrials = 2\n")
    assert measure(repository).stderr == ""


def test_without_a_repository_only_the_current_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "mcpace.toml").write_text("[measure]\ntrials = 2\n")
    (tmp_path / "a").mkdir()
    assert measure(tmp_path / "a").stderr == ""


def test_an_option_of_the_command_line_replaces_what_contradicts_it(tmp_path: Path) -> None:
    (tmp_path / "mcpace.toml").write_text("[load]\nrate = 20\narrivals = 'poisson'\nthreshold = ['errors<1%']\n")
    words = ("load", "profile:simple", "--max-calls", "3", "--warm-up", "0s", "--json")
    open_load = run(*words, folder=tmp_path)
    assert (open_load.code, '"poisson"' in open_load.stdout) == (DONE, True)
    closed = run(*words, "--vus", "1", folder=tmp_path)
    assert (closed.code, '"poisson"' in closed.stdout) == (DONE, False)
    assert closed.sentence().endswith("mcpace.toml: threshold")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[measur]\n", "measur: there is no such command; did you mean measure?"),
        ("trials = 2\n", "trials: there is no such command"),
        ("measure = 2\n", "measure: it must be a table"),
        ("[measure]\ntrails = 2\n", "measure.trails: there is no such option; did you mean trials"),
        ("[measure]\ntrials = 'two'\n", "measure.trials: it must be a whole number, not a string"),
        ("[measure]\ntrials = true\n", "measure.trials: it must be a whole number, not true or false"),
        ("[measure]\ntrials = 1.5\n", "measure.trials: it must be a whole number, not a number"),
        ("[measure]\ntrials = 0\n", "measure.trials: "),
        ("[measure]\nhold = 'soon'\n", "measure.hold: 'soon' is no length of time"),
        ("[measure]\nhold = 2024-01-01\n", "measure.hold: it must be a string or a number, not a date or a time"),
        ("[measure]\nfail-on = 'any'\n", "measure.fail-on: it must be a list of strings, not a string"),
        ("[measure]\nserver-timing = 1\n", "measure.server-timing: it must be true or false, not a number"),
        ("[measure\n", "the file is not TOML: "),
    ],
)
def test_a_mistake_is_one_sentence_with_file_and_key(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "mcpace.toml").write_text(text)
    ended = measure(tmp_path)
    assert (ended.code, ended.stdout) == (USAGE, "")
    assert ended.sentence().startswith(f"{tmp_path / 'mcpace.toml'}: {sentence}")


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("measure", "python = './python'"),
        ("measure", "header = ['X-Token: $HOME']"),
        ("measure", "config = 'mcp.json'"),
        ("measure", "cacert = 'ca.pem'"),
        ("measure", "auth = 'bearer'"),
        ("measure", "tool = 'delete'"),
        ("measure", "args = '{}'"),
        ("measure", "out = 'run.json'"),
        ("measure", "html = 'run.html'"),
        ("measure", "recordings = 'r'"),
        ("measure", "inside = true"),
        ("measure", "pid = 1"),
        ("measure", "quiet = true"),
        ("load", "bearer = 'AWS_SECRET_ACCESS_KEY'"),
        ("load", "otlp = 'http://example.com'"),
        ("load", "scenario = 's.toml'"),
        ("load", "replay = 'r.jsonl'"),
        ("load", "data = ['a=/etc/passwd']"),
        ("load", "mix = ['delete=1']"),
        ("load", "workers = ['ssh:example.com']"),
        ("load", "worker-command = 'sh'"),
        ("clients", "target = ['stdio:sh']"),
        ("record", "upstream = 'stdio:sh'"),
        ("serve", "host = '0.0.0.0'"),
        ("serve", "allowed-origin = ['*']"),
        ("serve", "store = 'redis://example.com'"),
    ],
)
def test_a_file_sets_no_program_secret_target_or_path(command: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "mcpace.toml").write_text(f"[{command}]\n{line}\n")
    needed = {
        "clients": ["python@1.12.1", "--target", "profile:simple"],
        "record": ["--upstream", "http://127.0.0.1:1"],
    }
    ended = run(command, *needed.get(command, ["profile:simple"]), folder=tmp_path)
    assert (ended.code, ended.stdout) == (USAGE, "")
    key = line.partition(" ")[0]
    expected = f"{tmp_path / 'mcpace.toml'}: {command}.{key}: this option is taken from the command line only"
    assert ended.sentence() == expected


def test_two_files_in_one_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mcpace.toml").write_text("[measure]\ntrials = 2\n")
    (tmp_path / "pyproject.toml").write_text("[tool.mcpace.measure]\ntrials = 3\n")
    assert "keep one of the two" in measure(tmp_path).sentence()


def test_a_pyproject_of_others_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[this is not TOML")
    assert measure(tmp_path).stderr == ""


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def make_large(path: Path) -> None:
    path.write_text("# mcpace\n" * 200_000)


@pytest.mark.parametrize("make", [make_pipe, make_device, make_socket, Path.mkdir, make_large])
@pytest.mark.parametrize("name", ["mcpace.toml", "pyproject.toml"])
def test_a_file_that_never_ends_is_refused(name: str, make: Any, tmp_path: Path) -> None:
    make(tmp_path / name)
    ended = measure(tmp_path)
    assert (ended.code, ended.stdout) == (USAGE, "")
    assert ended.sentence().startswith(f"{tmp_path / name}: it ")
