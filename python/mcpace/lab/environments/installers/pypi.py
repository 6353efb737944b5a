"""Python packages: a virtual environment resolved as of the release's upload, by uv.

Old releases don't run beside today's dependencies.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

from mcpace.lab.environments.installers.steps import in_one_line, run_step
from mcpace.lab.environments.installers.wanted import Installed, Wanted
from mcpace.lab.environments.releases import Say, find, parse_selection
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.paths import find_uv
from mcpace.lab.processes.child_processes import run_child

LIST_LIMIT_S = 120.0


class Pypi:
    """Releases of the package index that uv is configured with."""

    cached = True

    def recipe(self, wanted: Wanted) -> list[object]:
        install = wanted.adapter.install
        minor = ".".join(str(part) for part in sys.version_info[:2])
        return [
            install.package, install.extras, wanted.also, install.overrides, install.as_of_release,
            install.margin_hours, str(install.python), minor,
        ]  # fmt: skip

    def build(self, wanted: Wanted, folder: Path, say: Say) -> Installed:
        install = wanted.adapter.install
        release = find(install.package, parse_selection(wanted.version), say)
        assert release.uploaded is not None, "without upload times the index was refused"
        as_of = release.uploaded + timedelta(hours=install.margin_hours)
        say(f"installing {wanted.label}")
        uv = str(find_uv())
        interpreter = sys.executable if install.python.contains(running_python()) else str(install.python)
        make = [uv, "venv", "--quiet", "--no-project", "--allow-existing", "--python", interpreter, str(folder)]
        run_step(make, wanted.label)
        extras = f"[{','.join(install.extras)}]" if install.extras else ""
        requirements = [f"{install.package}{extras}=={release.version}", *wanted.also]
        time_machine = ["--exclude-newer", as_of.strftime("%Y-%m-%dT%H:%M:%SZ")] if install.as_of_release else []
        # Bytecode now, or the first trial would pay for it.
        options = ["--quiet", "--compile-bytecode", "--python", str(python_of(folder)), *time_machine]
        if install.overrides:
            overrides = folder / "overrides.txt"
            overrides.write_text("\n".join(install.overrides) + "\n", encoding="utf-8")
            options += ["--overrides", str(overrides)]
        run_step([uv, "pip", "install", *options, *requirements], wanted.label)
        return Installed(installed(folder))

    def places(self, folder: Path) -> dict[str, str]:
        return {"python": str(python_of(folder))}

    def stands(self, folder: Path) -> bool:
        """An interpreter goes when its system is upgraded."""
        return python_of(folder).exists()

    def runs_on(self) -> dict[str, str]:
        return {}


def installed(folder: Path) -> dict[str, str]:
    """Every package by name."""
    listing = [str(find_uv()), "pip", "list", "--format", "json", "--python", str(python_of(folder))]
    done = run_child(listing, LIST_LIMIT_S)
    try:
        return {entry["name"]: entry["version"] for entry in json.loads(done.stdout)}
    except (ValueError, KeyError, TypeError):
        raise EnvironmentProblem(f"uv doesn't list what it installed: {in_one_line(done.stderr)}") from None


def python_of(folder: Path) -> Path:
    return folder / "bin" / "python"


def running_python() -> str:
    return ".".join(str(part) for part in sys.version_info[:3])
