"""`--help` of each command loads its options only."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    "asyncio",
    "http.client",
    "mcpace.lab.environments.environment",
    "mcpace.report.model.contexts",
    "mcpace.report.model.run",
    "numpy",
    "packaging",
    "pydantic",
    "rich",
    "ssl",
    "urllib.request",
}
PROGRAM = f"""
import contextlib, io, sys
from mcpace.cli.commands import COMMANDS, app
for name in COMMANDS:
    before = set(sys.modules)
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        app([name, "--help"], standalone_mode=False)
    assert "--help" in shown.getvalue(), name
    if loaded := {HEAVY!r} & (sys.modules.keys() - before):
        print(name, *sorted(loaded))
"""


def test_help_of_a_command_loads_no_experiment() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == ""
