"""Packages of OpenTelemetry for Python servers, in a folder of mcpace's own.

Design constraint: The environment of the server never changes. The folder stands last on the server's path, so that the
server keeps its own versions of all packages that both have.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from pathlib import Path

from mcpace.lab.environments.environment import hold_lock, make_folder, temporary_build
from mcpace.lab.environments.installers.steps import run_step
from mcpace.lab.environments.releases import Say
from mcpace.lab.paths import cache_folder, find_uv

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
    digest = hashlib.sha256(packages.encode()).hexdigest()[:8]
    path = cache_folder() / "inside" / f"python-{digest}"
    if path.is_dir():
        return path / PACKAGES_FOLDER
    make_folder(path.parent)
    with hold_lock(path.with_name(f"{path.name}.lock"), LABEL, say):
        if not path.is_dir():
            say(f"installing {LABEL}")
            with temporary_build(path, LABEL) as folder:
                requirements = folder / PACKAGES
                requirements.write_text(packages, encoding="utf-8")
                target = ["--target", str(folder / PACKAGES_FOLDER), "--python-version", OLDEST_PYTHON, "--no-deps"]
                command = [str(find_uv()), "pip", "install", "--quiet", *target, "--requirements", str(requirements)]
                run_step(command, LABEL)
    return path / PACKAGES_FOLDER
