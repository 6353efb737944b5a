"""Packages of OpenTelemetry for Python servers, in a folder of mcpace's own.

Design constraint: The folder stands last on the server's path, so that the server keeps its own versions of all packages
that both have.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from mcpace.lab.environments.installers.steps import run_step
from mcpace.lab.environments.releases import Say
from mcpace.lab.inside.package_folder import ensure_folder
from mcpace.lab.paths import find_uv

PACKAGES = "python_packages.txt"
PACKAGES_FOLDER = "site-packages"
"""Name by which stacks show that its code is no code of the server."""
LABEL = "OpenTelemetry for Python"
OLDEST_PYTHON = "3.10"
"""Packages are resolved for this version, and work on all later ones."""


def ensure_overlay(say: Say) -> Path:
    """Returns the folder of the packages, and installs them on first use.

    Raises :class:`EnvironmentProblem` where that fails.
    """
    packages = (resources.files("mcpace.lab.inside") / PACKAGES).read_text(encoding="utf-8")

    def install(folder: Path) -> None:
        requirements = folder / PACKAGES
        requirements.write_text(packages, encoding="utf-8")
        target = ["--target", str(folder / PACKAGES_FOLDER), "--python-version", OLDEST_PYTHON, "--no-deps"]
        command = [str(find_uv()), "pip", "install", "--quiet", *target, "--requirements", str(requirements)]
        run_step(command, LABEL)

    return ensure_folder("python", packages, LABEL, say, install) / PACKAGES_FOLDER
