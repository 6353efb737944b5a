"""The command in an installation without extras: its lists of commands work, and the lab names the missing package."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import Ended, run

HIDDEN = ("numpy", "packaging")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder whose ``sitecustomize`` hides the packages of the extra ``lab``."""
    lines = ["import sys", *(f"sys.modules[{name!r}] = None" for name in HIDDEN)]
    (tmp_path / "sitecustomize.py").write_text("\n".join(lines))
    return tmp_path


def mcpace(bare: Path, *words: str) -> Ended:
    return run(*words, folder=bare, environment={"PYTHONPATH": str(bare)})


def test_the_version_needs_no_extra(bare: Path) -> None:
    ended = mcpace(bare, "--version")
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout.startswith("mcpace ")


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_the_list_of_commands_needs_no_extra(words: tuple[str, ...], bare: Path) -> None:
    listed = mcpace(bare, *words)
    lines = (listed.stdout + listed.stderr).splitlines()
    assert {"measure", "serve", "report"} <= {line.split()[0] for line in lines if line.startswith("  ")}


def test_a_command_of_the_lab_says_what_to_install(bare: Path) -> None:
    ended = mcpace(bare, "measure", "profile:simple")
    assert ended.code == 3
    assert ended.sentence().endswith("is not installed: pip install 'mcpace[lab]'")
