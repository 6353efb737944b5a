"""Commands name equal things equally, and each has the options that all have."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from mcpace.cli.commands import COMMANDS, LAB_PACKAGES, app
from mcpace.cli.settings_file import OPTIONS, is_settable
from mcpace.lab.requirements import EXTRAS
from support.commands import COMMAND, LIMIT_S, run

ROOT = Path(__file__).parents[3]
EXPERIMENTS = (
    *("check", "measure", "explain", "clients", "layers", "load", "servers"),
    *("gate", "compare", "gateway", "replicas", "bisect", "query", "demo"),
)
DIFFERENT_BY_MEANING = {"--args", "--otlp", "--path", "--workers"}
"""Options whose values differ between commands: `load` takes arguments of several tools and places of workers, `export`
a file too."""


@pytest.fixture(scope="module")
def commands() -> dict[str, Any]:
    group = typer.main.get_command(app)
    return {name: group.get_command(typer.Context(group), name) for name in COMMANDS}


def options(command: Any) -> dict[str, Any]:
    return {option: param for param in command.params for option in param.opts if option.startswith("--")}


def test_an_option_takes_the_same_values_in_all_commands(commands: dict[str, Any]) -> None:
    shapes: dict[str, set[tuple[Any, ...]]] = {}
    for command in commands.values():
        for option, param in options(command).items():
            shape = (tuple(param.opts), tuple(param.secondary_opts), param.metavar, param.is_flag)
            shapes.setdefault(option, set()).add(shape)
    assert {option for option, found in shapes.items() if len(found) > 1} <= DIFFERENT_BY_MEANING


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_prints_and_saves_in_the_same_ways(name: str, commands: dict[str, Any]) -> None:
    assert {"--json", "--out", "--html", "--quiet"} <= set(options(commands[name]))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_quiet_and_the_short_help(name: str, commands: dict[str, Any], tmp_path: Path) -> None:
    assert "--quiet" in options(commands[name])
    ended = run(name, "-h", folder=tmp_path)
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout == run(name, "--help", folder=tmp_path).stdout


def test_what_a_file_may_set_exists_and_can_be_overruled(commands: dict[str, Any]) -> None:
    found = {
        option.removeprefix("--")
        for command in commands.values()
        for option, param in options(command).items()
        if is_settable(param)
    }
    assert found == OPTIONS


def test_the_extras_are_those_of_the_package() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(extras)
    # The module of toktok-rs is toktok.
    assert set(LAB_PACKAGES) == {re.split(r"[>=]", line)[0].removesuffix("-rs") for line in extras["lab"]}


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_no_color_takes_the_colours_away(environment: dict[str, str], tmp_path: Path) -> None:
    forced = {"FORCE_COLOR": "1", "TERM": "xterm-256color", **environment}
    run_file = ROOT / "tests" / "fixtures" / "runs" / "clients.json"
    ended = run("report", run_file, folder=tmp_path, environment=forced)
    colours = re.findall(r"\x1b\[(?:\d+;)*(?:3[0-7]|38|9[0-7])[;m]", ended.stdout)
    assert bool(colours) == (not environment)


@pytest.mark.parametrize(("shell", "begin"), [("bash", "_mcpace"), ("zsh", "#compdef mcpace"), ("fish", "complete ")])
def test_completion_prints_the_script_of_a_shell(shell: str, begin: str, tmp_path: Path) -> None:
    ended = run("completion", shell, folder=tmp_path)
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout.startswith(begin)


@pytest.mark.parametrize(
    ("words", "index", "found"),
    [
        ("mcpace meas", 1, ["measure"]),
        ("mcpace measure --tri", 2, ["--trials"]),
        ("mcpace serve --work", 2, ["--workers"]),
        ("mcpace completion ", 2, ["bash", "zsh", "fish"]),
    ],
)
def test_bash_completes_commands_and_options(words: str, index: int, found: list[str], tmp_path: Path) -> None:
    script = subprocess.run([*COMMAND, "completion", "bash"], capture_output=True, text=True, check=True).stdout
    # The script is used as bash uses it: the function fills COMPREPLY.
    last = " ''" if words.endswith(" ") else ""
    asking = f"{script}\nCOMP_WORDS=({words}{last}); COMP_CWORD={index}\n"
    asking += '_mcpace_completion mcpace; printf "%s\\n" "${COMPREPLY[@]}"'
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    # Settings of a file are no matter of completion.
    (tmp_path / "mcpace.toml").write_text("[broken")
    done = subprocess.run(
        ["bash", "--norc", "-c", asking],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PATH": path}, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.stdout.split() == found, done.stderr
