"""The hook of .pre-commit-hooks.yaml, run by pre-commit in a repository of its own, as docs/ci.md describes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
SERVER = """
from mcpace import MCPServer

server = MCPServer("hooked")


@server.tool(description="Adds." + " Adds." * {repeats})
def add(a: int, b: int) -> int:
    return a + b


server.run()
"""


def git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    command = ["git", *settings, *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


def hooked(tmp_path: Path) -> Path:
    """A repository with the configuration of the page, for the hook of this checkout."""
    hooks, used = tmp_path / "hooks", tmp_path / "used"
    for folder in (hooks, used):
        folder.mkdir()
        git(folder, "init", "--quiet")
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
    git(hooks, "add", ".")
    git(hooks, "commit", "--quiet", "--message", "The hook")
    page = (ROOT / "docs" / "ci.md").read_text()
    [block] = re.findall(r"^```yaml\n(repos:.*?)^```", page, re.M | re.S)
    told = yaml.safe_load(block)
    told["repos"][0] |= {"repo": str(hooks), "rev": git(hooks, "rev-parse", "HEAD")}
    (used / ".pre-commit-config.yaml").write_text(yaml.safe_dump(told))
    return used


def run_hooks(folder: Path, name: str, text: str) -> subprocess.CompletedProcess[str]:
    """Stages a file and runs the hooks for it."""
    (folder / name).write_text(text)
    git(folder, "add", ".")
    program = shutil.which("pre-commit", path=PATH)
    assert program, "pre-commit is missing: make"
    environment = {**os.environ, "PATH": PATH, "PRE_COMMIT_HOME": str(folder.parent / "cache")}
    command = [program, "run", "--color=never"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_hook_refuses_a_large_listing_and_lets_a_small_one_pass(tmp_path: Path) -> None:
    folder = hooked(tmp_path)
    small = run_hooks(folder, "server.py", SERVER.format(repeats=1))
    assert small.returncode == 0 and "Passed" in small.stdout, small.stdout
    large = run_hooks(folder, "server.py", SERVER.format(repeats=20_000))
    assert large.returncode == 1 and "large-listing" in large.stdout, large.stdout
    git(folder, "commit", "--quiet", "--message", "A server", "--no-verify")
    other = run_hooks(folder, "README.md", "A document.")
    assert other.returncode == 0 and "Skipped" in other.stdout, other.stdout
