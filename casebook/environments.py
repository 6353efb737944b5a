"""Environments of the casebook's programs in mcpace's cache: one for each set of packages."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

from case import FOLDER, Program

from mcpace.lab.environments.environment import hold_lock, make_folder
from mcpace.lab.environments.installers.steps import require_tool, run_step
from mcpace.lab.environments.toolchains import REMEDIES
from mcpace.lab.paths import cache_folder, find_uv

MARKER = "complete"
"""File that is written last into an environment."""


def command_of(case: str, program: Program) -> list[str]:
    """The command that runs a program of a case. Installs its packages where that was not done before."""
    recipe = json.dumps([program.language, sorted(program.packages), str(program.before), sys.version_info[:2]])
    folder = cache_folder() / "casebook" / hashlib.sha256(recipe.encode()).hexdigest()[:12]
    source = FOLDER / case / program.program
    make_folder(folder.parent)
    with hold_lock(folder.with_suffix(".lock"), case, print):
        if not (folder / MARKER).exists():
            shutil.rmtree(folder, ignore_errors=True)
            print(f"{case}: installing {' '.join(program.packages)}", file=sys.stderr)
            (_install_python if program.language == "python" else _install_node)(folder, case, program)
            (folder / MARKER).touch()
    if program.language == "python":
        return [str(folder / "bin" / "python"), str(source), *program.arguments]
    # Node looks for modules beside the program.
    copy = folder / case / source.name
    copy.parent.mkdir(exist_ok=True)
    shutil.copyfile(source, copy)
    return [require_tool("node", case, REMEDIES["npm"]), str(copy), *program.arguments]


def _install_python(folder: Path, case: str, program: Program) -> None:
    uv = str(find_uv())
    run_step([uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(folder)], case)
    as_of = ["--exclude-newer", f"{program.before}T00:00:00Z"] if program.before else []
    options = ["--quiet", "--compile-bytecode", "--python", str(folder / "bin" / "python"), *as_of]
    run_step([uv, "pip", "install", *options, *program.packages], case)


def _install_node(folder: Path, case: str, program: Program) -> None:
    npm = require_tool("npm", case, REMEDIES["npm"])
    folder.mkdir()
    (folder / "package.json").write_text('{"private": true, "type": "module"}\n', encoding="utf-8")
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    as_of = [f"--before={program.before}T00:00:00Z"] if program.before else []
    run_step([npm, "install", *options, *as_of, *program.packages], case, cwd=folder)
