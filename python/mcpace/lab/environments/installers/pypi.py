"""Python packages: a virtual environment that uv resolves as of the release's upload.

Old releases often don't run with today's dependencies.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from mcpace.lab.environments.installers.protocol import Installed, InstallRequest
from mcpace.lab.environments.installers.steps import in_one_line, run_step
from mcpace.lab.environments.releases import Say, find_release, parse_selection
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.paths import find_uv
from mcpace.lab.processes.child_processes import run_child

LIST_LIMIT_S = 120.0
END_OF_TIME = "9999-01-01T00:00:00Z"


class Pypi:
    """Releases of the package index that uv is configured with."""

    cached = True

    def recipe(self, request: InstallRequest) -> list[object]:
        install = request.adapter.install
        minor = ".".join(str(part) for part in sys.version_info[:2])
        return [
            install.package, install.extras, request.extra_requirements, install.overrides, install.as_of_release,
            install.margin_hours, str(install.python), minor,
        ]  # fmt: skip

    def build(self, request: InstallRequest, folder: Path, say: Say) -> Installed:
        install = request.adapter.install
        release = find_release(install.package, parse_selection(request.version), say)
        assert release.uploaded is not None, "without upload times the index was refused"
        as_of = release.uploaded + timedelta(hours=install.margin_hours)
        say(f"installing {request.release_label}")
        uv = str(find_uv())
        interpreter = sys.executable if install.python.contains(running_python()) else str(install.python)
        make = [uv, "venv", "--quiet", "--no-project", "--allow-existing", "--python", interpreter, str(folder)]
        run_step(make, request.release_label)
        extras = f"[{','.join(install.extras)}]" if install.extras else ""
        requirements = [f"{install.package}{extras}=={release.version}", *request.extra_requirements]
        time_machine = release_time(as_of, request.extra_requirements) if install.as_of_release else []
        # Bytecode is compiled now, or the first trial would include it.
        options = ["--quiet", "--compile-bytecode", "--python", str(python_of(folder)), *time_machine]
        if install.overrides:
            overrides = folder / "overrides.txt"
            overrides.write_text("\n".join(install.overrides) + "\n", encoding="utf-8")
            options += ["--overrides", str(overrides)]
        run_step([uv, "pip", "install", *options, *requirements], request.release_label)
        return Installed(list_packages(folder))

    def command_values(self, folder: Path) -> dict[str, str]:
        return {"python": str(python_of(folder))}

    def is_usable(self, folder: Path) -> bool:
        """Whether the interpreter still exists: an upgrade of the system may remove it."""
        return python_of(folder).exists()

    def runtime_versions(self) -> dict[str, str]:
        return {}


def release_time(as_of: datetime, requirements: Sequence[str]) -> list[str]:
    """Options that resolve as of a time. A requirement of an exact version is exempt: its time is known."""
    exact = [name for name, version in (one.split("==") for one in requirements if "==" in one) if version]
    exempt = [f"--exclude-newer-package={name}={END_OF_TIME}" for name in exact]
    return ["--exclude-newer", as_of.strftime("%Y-%m-%dT%H:%M:%SZ"), *exempt]


def list_packages(folder: Path) -> dict[str, str]:
    """Versions of all installed packages, by name."""
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
