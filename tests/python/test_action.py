"""docs/ci.md, followed in a repository of its own: the Action stops the slow change and lets the fast one pass."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support.commands import COMMAND
from support.composite_action import CompositeAction, Step
from support.packed_wheel import pack_wheel

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text()


def code_block(language: str, having: str) -> str:
    """The one block of the page in this language that has these words."""
    found = [text for text in re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S) if having in text]
    assert len(found) == 1, (language, having)
    return found[0]


def git(*words: str, folder: Path) -> None:
    settings = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True, timeout=60)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The folder of a job: `base` and `head` are checkouts of a repository with the page's server."""
    place = tmp_path / "work"
    base = place / "base"
    base.mkdir(parents=True)
    (base / "server.py").write_text(code_block("python", "PRICES"))
    prices = {f"item {number}": number for number in range(20_000)}
    (base / "prices.json").write_text(json.dumps({"tea": 310, **prices}))
    git("init", "--quiet", folder=base)
    git("add", ".", folder=base)
    git("commit", "--quiet", "--message", "A shop", folder=base)
    git("clone", "--quiet", str(base), str(place / "head"), folder=place)
    return place


def action(workspace: Path, mcpace: str = COMMAND[0], **inputs: str) -> CompositeAction:
    """The Action with the page's inputs, after its installation."""
    step = yaml.safe_load(code_block("yaml", "path: head"))["jobs"]["gate"]["steps"][-1]
    assert step["uses"].startswith("mcpace/mcpace@")
    temporary = workspace.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    own = {"trials": "8"} | {name.replace("_", "-"): value for name, value in inputs.items()}
    # The page's `python` is the one that has the server's packages.
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    made = CompositeAction(workspace, temporary, {**step["with"], **own}, {"PATH": programs})
    made.outputs["install.outputs.mcpace"] = mcpace
    return made


def change(workspace: Path, patch: str) -> None:
    subprocess.run(
        ["git", "apply", "--unidiff-zero", "-"], cwd=workspace / "head", input=patch, text=True, check=True, timeout=60
    )


def slow_change() -> str:
    """The page's change as a patch of `server.py`."""
    text = code_block("diff", "-PRICES")
    lines = text.splitlines()
    old, new = (sum(line[:1] != sign for line in lines) for sign in "+-")
    first = code_block("python", "PRICES").splitlines().index(lines[0][1:]) + 1
    return f"--- a/server.py\n+++ b/server.py\n@@ -{first},{old} +{first},{new} @@\n{text}".replace("\n\n", "\n \n")


def commands_of(log: str) -> list[str]:
    """The workflow commands that a runner would obey: those outside of the part in which commands are stopped."""
    obeyed, token = [], None
    for line in log.splitlines():
        if token is not None:
            token = None if line == f"::{token}::" else token
        elif line.startswith("::stop-commands::"):
            token = line.removeprefix("::stop-commands::")
        elif line.startswith("::"):
            obeyed.append(line)
    assert token is None, "the commands stay stopped"
    return obeyed


def sarif_of(step: Step) -> dict:
    return json.loads(Path(step.outputs["sarif"]).read_text())


def test_the_slow_change_of_the_page_is_stopped(workspace: Path) -> None:
    change(workspace, slow_change())
    step = action(workspace).run("measure")
    assert step.code == 1, step.log
    assert (step.outputs["outcome"], step.outputs["exit-code"]) == ("failed", "1")
    assert step.summary.startswith("### Gate: failed\n")
    assert any(one.startswith("::error title=mcpace slower") and "call price" in one for one in commands_of(step.log))
    results = sarif_of(step)["runs"][0]["results"]
    assert "slower" in {one["ruleId"] for one in results}
    names = {path.name for path in Path(step.outputs["results"]).iterdir()}
    assert names == {"run.json", "report.html", "summary.md", "mcpace.sarif", "log.txt"}


def test_a_settings_file_of_the_change_loosens_no_gate(workspace: Path) -> None:
    change(workspace, slow_change())
    (workspace / "head" / "mcpace.toml").write_text('[gate]\ntolerance = "1000%"\n')
    step = action(workspace, tolerance="").run("measure")
    assert (step.code, step.outputs["outcome"]) == (1, "failed"), step.log


def test_a_change_of_a_word_passes(workspace: Path) -> None:
    server = workspace / "head" / "server.py"
    server.write_text(server.read_text().replace("The price of an item", "The price of one item"))
    step = action(workspace, tolerance="100%").run("measure")
    assert (step.code, step.outputs["outcome"]) == (0, "passed"), step.log
    assert step.summary.startswith("### Gate: passed\n")
    assert not [one for one in commands_of(step.log) if one.startswith("::error")]


def test_a_finding_is_an_annotation_at_its_path_in_the_repository(workspace: Path) -> None:
    """A run of the fixtures has a line of source code; the command is a server's folder below the repository's root."""
    inside = workspace / "head" / "services" / "weather"
    inside.mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "fixtures" / "runs" / "inside.json", inside)
    step = action(
        workspace, working_directory="head/services/weather", target="inside.json", baseline="inside.json", base="",
        tool="", arguments="", trials="",
    ).run("measure")  # fmt: skip
    assert step.code == 0, step.log
    assert any(",file=services/weather/weather.py,line=13::" in one for one in commands_of(step.log))


def test_inputs_are_words_and_never_shell_text(workspace: Path) -> None:
    evil = '$(touch owned); `touch owned` "; touch owned #'
    made = action(workspace, target=evil, base=evil, tool=evil, options=f"--quiet\n--header\nX: {evil}\n")
    step = made.run("measure")
    assert (step.code, step.outputs["outcome"]) == (2, "error"), step.log
    assert not list(workspace.rglob("owned"))
    assert "Nothing was measured" in step.summary


def test_output_of_the_command_is_no_workflow_command(workspace: Path, tmp_path: Path) -> None:
    """The command is a stand-in that prints such lines; mcpace itself puts words of its own before a server's text."""
    command = stand_in(tmp_path, "echo ::error::owned; echo ::add-mask::e >&2; exit 1")
    step = action(workspace, mcpace=command).run("measure")
    assert step.code == 1 and "::error::owned" in step.log and "::add-mask::e" in step.log
    assert [one.split("::")[1] for one in commands_of(step.log)] == ["error title=mcpace gate"]


def stand_in(folder: Path, script: str) -> str:
    """A program in the place of mcpace."""
    command = folder / "stand-in"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    return str(command)


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"target": ""}, "the input target is empty"),
        ({"baseline": "old.json"}, "base or the input baseline, not both"),
        ({"command": "serve"}, "the input command must be gate, measure or load"),
        ({"inconclusive": "maybe"}, "the input inconclusive must be fail or pass"),
    ],
)
def test_a_wrong_input_is_named(inputs: dict[str, str], says: str, workspace: Path) -> None:
    step = action(workspace, **inputs).run("measure")
    assert step.code == 2
    assert says in step.log


def test_an_inconclusive_gate_fails_unless_it_may_pass(workspace: Path, tmp_path: Path) -> None:
    """The command is a stand-in, since an inconclusive result depends on the noise of the machine."""
    command = stand_in(tmp_path, "exit 4")
    failed = action(workspace, mcpace=command).run("measure")
    passed = action(workspace, mcpace=command, inconclusive="pass").run("measure")
    assert [one.outputs["outcome"] for one in (failed, passed)] == ["inconclusive"] * 2
    assert (failed.code, passed.code) == (4, 0)


@pytest.mark.network
def test_the_action_installs_mcpace_from_a_wheel(workspace: Path, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    pack_wheel(wheels)
    made = action(workspace, find_links=str(wheels), python=sys.executable)
    made.environment["PYTHONPATH"] = ""
    installed = made.run("install")
    assert installed.code == 0, installed.log
    assert Path(installed.outputs["mcpace"]).is_relative_to(tmp_path)
    made.inputs |= {"target": "profile:simple", "base": "", "tool": "", "arguments": "", "tolerance": "", "trials": "2"}
    step = made.run("measure")
    assert step.code == 0, step.log
    assert step.summary.startswith("### mcpace measure\n")


def test_a_version_that_is_none_is_refused(workspace: Path) -> None:
    step = action(workspace, version="0.1.0 --index-url=https://a.example").run("install")
    assert step.code == 2
    assert "the input version is not a version" in step.log


def test_the_page_names_every_input() -> None:
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    table = PAGE.partition("## Inputs")[2].partition("## ")[0]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.M) for name in re.findall(r"`([\w-]+)`", row)}
    assert named == set(inputs)
