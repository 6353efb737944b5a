"""What is written about the code is still true of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from mcpace import __version__, _core
from mcpace.report.words import findings

ROOT = Path(__file__).parents[2]


def test_generated_documents_are_fresh() -> None:
    script = ROOT / "scripts" / "generate_docs.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_versions_agree() -> None:
    assert __version__ == _core.VERSION


def test_every_finding_has_words_and_every_word_a_finding() -> None:
    assert sorted(findings.CODES) == sorted({entry["code"] for entry in _core.catalogue()["causes"]})


def test_every_make_task_is_in_its_help() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = set(re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split())  # type: ignore[index]
    listed = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.M))
    assert phony == listed


def test_the_readme_names_only_commands_that_exist() -> None:
    named = set(re.findall(r"mcpace ([a-z]+)\b", (ROOT / "README.md").read_text()))
    reference = (ROOT / "docs" / "cli.md").read_text()
    known = set(re.findall(r"^## mcpace ([a-z]+)$", reference, re.M))
    assert named <= known | {"import"}, named - known  # Python's word, not a command


def test_every_finding_is_explained() -> None:
    explained = re.findall(r"^## ([a-z-]+)$", (ROOT / "docs" / "findings.md").read_text(), re.M)
    assert sorted(explained) == sorted({entry["code"] for entry in _core.catalogue()["causes"]})
