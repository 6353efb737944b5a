"""A release has one version, complete metadata, and notes for its tag."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcpace import __version__

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import release_notes  # noqa: E402

CHANGELOG = """# Changelog

## [Unreleased]

## [0.2.0] - 2026-02-02

### Added

- B

## [0.1.0] - 2026-01-01

- A
"""


def packages() -> list[dict[str, Any]]:
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout)["packages"]


def test_every_crate_has_the_version_and_the_metadata_of_the_registry() -> None:
    for package in packages():
        assert package["version"] == __version__, package["name"]
        wanted = ["description", "license", "repository", "readme", "keywords", "categories"]
        wanted += ["documentation"] if package["publish"] != [] else []
        assert [name for name in wanted if not package[name]] == [], package["name"]
        assert len(package["keywords"]) <= 5 and max(map(len, package["keywords"])) <= 20
        assert (Path(package["manifest_path"]).parent / package["readme"]).is_file()


def test_the_python_package_takes_its_version_from_the_workspace() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" not in project and "version" in project["dynamic"]


def test_the_notes_of_a_release_are_its_section_of_the_changelog() -> None:
    assert release_notes.section(CHANGELOG, "0.2.0") == "### Added\n\n- B"
    assert release_notes.section(CHANGELOG, "0.1.0") == "- A"
    assert release_notes.section(CHANGELOG, "0.1") is None


def test_a_tag_of_another_version_is_refused() -> None:
    command = [sys.executable, ROOT / "scripts" / "release_notes.py", "v99.0.0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"the tag is v99.0.0 and the version in Cargo.toml is {__version__}: tag v{__version__}\n"


WORKFLOWS = [*sorted((ROOT / ".github" / "workflows").glob("*.yml")), ROOT / "action.yml"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_by_its_commit(path: Path) -> None:
    used = re.findall(r"uses: (?!\./)(.*)", path.read_text())
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


@pytest.mark.parametrize("path", WORKFLOWS[:-1], ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_every_job_has_a_limit(path: Path) -> None:
    told = yaml.safe_load(path.read_text())
    assert told["permissions"] == {"contents": "read"}
    assert [name for name, job in told["jobs"].items() if "uses" not in job and "timeout-minutes" not in job] == []


def test_every_make_task_of_a_workflow_exists() -> None:
    tasks = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    called = {
        task
        for path in WORKFLOWS
        for words in re.findall(r"run: make (.*)", path.read_text())
        for task in words.split()
    }
    assert called and called <= tasks
