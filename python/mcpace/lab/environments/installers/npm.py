"""Node packages. Servers use the package-lock.json of their version; clients are resolved as of the release's upload.

Install scripts of packages don't run.
"""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mcpace.lab.adapters.adapter import Role
from mcpace.lab.environments.installers.built import client_releases, copy_sources, sources_digest
from mcpace.lab.environments.installers.protocol import Installed, InstallRequest
from mcpace.lab.environments.installers.steps import (
    INSTALL_LIMIT_S,
    expect_success,
    in_one_line,
    read_version,
    require_tool,
    run_step,
)
from mcpace.lab.environments.releases import Say, find_release, parse_selection
from mcpace.lab.environments.toolchains import REMEDIES
from mcpace.lab.processes.child_processes import run_child

REMEDY = REMEDIES["npm"]
NPM_OPTIONS = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
NOTHING_SO_OLD = re.compile(r"^npm (?:error|ERR!) code ETARGET$", re.MULTILINE)


class Npm:
    """Releases of npm packages."""

    cached = True

    def recipe(self, request: InstallRequest) -> list[object]:
        install = request.adapter.install
        client_inputs = [install.as_of_release, install.margin_hours] if request.role is Role.CLIENT else []
        return [sources_digest(request), *client_inputs]

    def build(self, request: InstallRequest, folder: Path, say: Say) -> Installed:
        require_tool("node", request.release_label, REMEDY)
        npm = require_tool("npm", request.release_label, REMEDY)
        say(f"installing {request.release_label}")
        copy_sources(request, folder)
        of_its_time = True
        if request.role is Role.CLIENT:
            of_its_time = install_release(request, folder, [npm, "install", *NPM_OPTIONS], say)
        else:
            run_step([npm, "ci", *NPM_OPTIONS], request.release_label, cwd=folder, reason=first_lines)
        packages = json.loads((folder / "package-lock.json").read_text(encoding="utf-8")).get("packages", {})
        # Nested packages are private copies of other packages.
        names = {path.removeprefix("node_modules/"): entry.get("version") for path, entry in packages.items()}
        own = {name: version for name, version in names.items() if version and "node_modules/" not in name}
        return Installed(own, None if of_its_time else datetime.now(UTC).date().isoformat())

    def command_values(self, folder: Path) -> dict[str, str]:
        return {"node": require_tool("node", "the program", REMEDY), "built": str(folder)}

    def is_usable(self, folder: Path) -> bool:
        return (folder / "package.json").is_file()

    def runtime_versions(self) -> dict[str, str]:
        return {"node": read_version(["node", "--version"], r"v(\S+)")}


def install_release(request: InstallRequest, folder: Path, command: list[str], say: Say) -> bool:
    """Installs a release with the dependencies of its time. Returns whether that was possible.

    A mirror's time of a package is when the mirror first fetched it. If it fetched a dependency after the release, npm
    fails with `ETARGET`; today's dependencies are installed then.
    """
    install, package = request.adapter.install, client_releases(request).package
    uploaded = find_release(package, parse_selection(request.version), say, kind=install.kind.value).uploaded
    if install.as_of_release and uploaded is not None:
        as_of = (uploaded + timedelta(hours=install.margin_hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
        done = run_child([*command, f"--before={as_of}"], INSTALL_LIMIT_S, cwd=folder)
        if done.timed_out or not NOTHING_SO_OLD.search(done.stderr):
            expect_success(done, request.release_label, INSTALL_LIMIT_S, first_lines)
            return True
        say(f"{request.release_label}: {first_lines(done.stderr)}; going on with today's dependencies")
        # The second attempt must not reuse files of the first.
        shutil.rmtree(folder / "node_modules", ignore_errors=True)
        (folder / "package-lock.json").unlink(missing_ok=True)
    run_step(command, request.release_label, cwd=folder, reason=first_lines)
    return not install.as_of_release or uploaded is None


def first_lines(text: str) -> str:
    """First lines of npm's output, which have the reason of a failure; usage hints follow."""
    lines = [line.removeprefix("npm error").strip() for line in text.splitlines() if line.startswith("npm error")]
    reasons = [line for line in lines if line and not line.startswith("code ")]
    return in_one_line("\n".join(reasons[:3]) or text)
