"""Measurements of tools with ``--inside``, for the proofs of the findings inside a tool."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.commands import run
from support.kept_runs import keep_json


def measure_inside(command: Sequence[str], tool: str, folder: Path, *options: object) -> dict[str, Any]:
    """The case of the tool's calls. Every source of evidence has to be there."""
    target = f"stdio:{shlex.join(command)}"
    done = run("measure", target, "--tool", tool, "--inside", "--json", *options, folder=folder)
    assert done.code == 0, done.stderr
    keep_json(done.stdout)
    [case] = [case for case in json.loads(done.stdout)["cases"] if case["operation"] == "call"]
    assert case["inside"]["missing"] == [], case["inside"]
    return dict(case)


def contexts_by_code(case: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["code"]: finding["context"] for finding in case["findings"]}
