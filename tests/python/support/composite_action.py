"""Runs the scripts of action.yml in the way of a GitHub runner: the same environment, the same working folders."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
LIMIT_S = 600
EXPRESSION = re.compile(r"\$\{\{ (inputs|steps)\.([\w.-]+) \}\}")


@dataclass
class Step:
    """A step that has run."""

    code: int
    log: str
    """Output that the runner shows, and from which it reads commands."""
    summary: str
    outputs: dict[str, str]


@dataclass
class CompositeAction:
    """One use of the Action in a job."""

    workspace: Path
    temporary: Path
    inputs: dict[str, str]
    environment: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    """Outputs of the steps so far, as ``step.outputs.name``."""

    def __post_init__(self) -> None:
        self._action = yaml.safe_load((ROOT / "action.yml").read_text())
        declared = self._action["inputs"]
        assert set(self.inputs) <= set(declared), "inputs that the Action does not have"
        missing = [name for name, one in declared.items() if one.get("required") and name not in self.inputs]
        assert not missing, missing
        self.inputs = {name: one.get("default", "") for name, one in declared.items()} | self.inputs

    def run(self, name: str) -> Step:
        """Runs the step ``name``, which has a script."""
        [step] = [one for one in self._action["runs"]["steps"] if one.get("id") == name]
        assert step["shell"] == "bash"
        files = {key: self.temporary / f"{name}-{key}" for key in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for path in files.values():
            path.write_text("")
        environment = {
            **os.environ,
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.temporary),
            **{key: str(path) for key, path in files.items()},
            **self.environment,
            **{key: self._value(text) for key, text in step["env"].items()},
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", self._script(step)],
            cwd=self.workspace / self._value(step.get("working-directory", ".")),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        written = [line.partition("=") for line in files["GITHUB_OUTPUT"].read_text().splitlines()]
        outputs = {key: value for key, _, value in written}
        self.outputs |= {f"{name}.outputs.{key}": value for key, value in outputs.items()}
        return Step(done.returncode, done.stdout, files["GITHUB_STEP_SUMMARY"].read_text(), outputs)

    def _script(self, step: dict[str, Any]) -> str:
        assert "${{" not in step["run"], "an expression in a script is shell text"
        return str(step["run"])

    def _value(self, text: str) -> str:
        def replaced(match: re.Match[str]) -> str:
            return self.inputs[match[2]] if match[1] == "inputs" else self.outputs[match[2]]

        value = EXPRESSION.sub(replaced, text)
        assert EXPRESSION.search(text) or "${{" not in text, f"an expression that this runner does not know: {text}"
        return value
