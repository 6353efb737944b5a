"""An agent of the official Python SDK at the real ``mcpace mcp``, and what it got."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import interop
from support.commands import COMMAND

PROGRAM = interop.SOURCES / "agent" / "client.py"
LIMIT_S = 240

Call = dict[str, Any]


@dataclass(frozen=True)
class Conversation:
    """Result of an agent's script."""

    tools: dict[str, Any]
    questions: list[str]
    steps: list[list[dict[str, Any]]]
    survivors: list[int]
    """Processes of cancelled calls that still run after the last step."""

    def only(self) -> dict[str, Any]:
        """The answer to the only call."""
        [[answer]] = self.steps
        return answer


def call(name: str, **arguments: Any) -> Call:
    """A call of an agent's script."""
    return {"name": name, "arguments": arguments}


def converse(
    folder: Path,
    *steps: Call | Sequence[Call],
    options: Sequence[object] = (),
    answer: str | None = None,
    mode: str = "legacy",
) -> Conversation:
    """Runs ``mcpace mcp`` in ``folder``, with its reports in ``reports`` there, and an agent that makes the calls."""
    command = [*COMMAND, "mcp", "--reports", str(folder / "reports"), *map(str, options)]
    script = {
        "command": command,
        "folder": str(folder),
        "environment": dict(os.environ),
        "mode": mode,
        "answer": answer,
        "steps": [[step] if isinstance(step, dict) else list(step) for step in steps],
    }
    # The interpreter of the SDK has no mcpace, and must not find the one of this test.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [interop.official(), str(PROGRAM), json.dumps(script)],
        capture_output=True, text=True, timeout=LIMIT_S, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return Conversation(**json.loads(done.stdout))
