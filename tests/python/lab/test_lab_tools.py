"""Parts of the lab's tools: the bound of results, and the limits of a command."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpace.lab_tools.lab_process import LabCommand, LabProcess, RunFailed
from mcpace.lab_tools.results import MOST_BYTES, lab_result, result_bytes
from mcpace.report.groups import group_findings
from support.arbitrary_runs import KINDS, any_run

WAIT_S = 30


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 5000))
def test_a_result_of_any_run_is_small_and_without_markup(kind: str, seed: int) -> None:
    run = any_run(kind, seed)
    run.cases = [case.model_copy(update={"error": "<a>\x1b" + "é" * 1000}) for case in run.cases * 20]
    result = lab_result(run, Path("/reports/run.json"), Path("/reports/report.html"), failure="\x1b" + "x" * 9000)
    assert result_bytes(result) <= MOST_BYTES
    assert not set(result.model_dump_json()) & set("\x1b<>`")
    assert len(result.causes) + result.more_causes == len(group_findings(run.cases))


async def run_command(command: LabCommand, folder: Path) -> str:
    async def report(elapsed_s: float, limit_s: float, step: str) -> None:
        assert 0 <= elapsed_s <= limit_s

    process = LabProcess(folder)
    async with process.reserve("a test", lambda: False):
        return await process.run(command, report)


def test_a_command_ends_at_its_time_limit_with_its_processes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    program = tmp_path / "waiting.py"
    program.write_text("import os, signal\nopen('started', 'w').write(f'{os.getpid()}\\n')\nsignal.pause()\n")
    command = LabCommand(("measure", "--trials=1"), (f"stdio:{sys.executable} {program}",), tmp_path, limit_s=3)

    async def limited() -> tuple[str, int]:
        reading = asyncio.to_thread((tmp_path / "started").read_text)
        reason, written = await asyncio.gather(run_command(command, tmp_path), reading)
        return reason, int(written)

    reason, process = asyncio.run(asyncio.wait_for(limited(), WAIT_S))
    assert reason == "the time limit of 3 s was reached"
    assert not Path(f"/proc/{process}").exists()


def test_a_command_that_saves_nothing_has_a_reason(tmp_path: Path) -> None:
    command = LabCommand(("measure",), ("nonsense",), tmp_path, limit_s=WAIT_S)
    with pytest.raises(RunFailed, match="'nonsense' is not a target"):
        asyncio.run(run_command(command, tmp_path))


def test_a_command_has_no_more_memory_than_its_limit(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text("{}\n")
    command = LabCommand(("explain",), (str(tmp_path / "one.jsonl"),), tmp_path, WAIT_S, memory_bytes=2**20)
    with pytest.raises(RunFailed) as refused:
        asyncio.run(run_command(command, tmp_path))
    assert "not a recording" not in str(refused.value)


def test_modules_of_the_current_folder_are_not_imported(tmp_path: Path) -> None:
    for module in ("mcpace", "typer", "asyncio", "rich"):
        (tmp_path / f"{module}.py").write_text("open('imported', 'w')\n")
    command = LabCommand(("measure", "--trials=1"), ("profile:simple",), tmp_path / "run", WAIT_S)
    (tmp_path / "run").mkdir()
    assert asyncio.run(run_command(command, tmp_path)) == ""
    assert not (tmp_path / "imported").exists()
    assert command.run.stat().st_mode & 0o777 == 0o600
