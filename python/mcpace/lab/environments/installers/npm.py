"""Node packages: servers by the version's package-lock.json, clients as of the release's upload.

No package's install script runs.
"""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mcpace.lab.adapters.adapter import Role
from mcpace.lab.environments.installers.built import client_releases, copy_sources, digest
from mcpace.lab.environments.installers.steps import (
    INSTALL_LIMIT_S,
    asked,
    expect_success,
    in_one_line,
    needed,
    run_step,
)
from mcpace.lab.environments.installers.wanted import Installed, Wanted
from mcpace.lab.environments.releases import Say, find, parse_selection
from mcpace.lab.environments.toolchains import REMEDIES
from mcpace.lab.processes.child_processes import run_child

REMEDY = REMEDIES["npm"]
NOTHING_SO_OLD = re.compile(r"^npm (?:error|ERR!) code ETARGET$", re.MULTILINE)


class Npm:
    """Releases of npm packages."""

    cached = True

    def recipe(self, wanted: Wanted) -> list[object]:
        install = wanted.adapter.install
        of_client = [install.as_of_release, install.margin_hours] if wanted.role is Role.CLIENT else []
        return [digest(wanted), *of_client]

    def build(self, wanted: Wanted, folder: Path, say: Say) -> Installed:
        needed("node", wanted.label, REMEDY)
        npm = needed("npm", wanted.label, REMEDY)
        say(f"installing {wanted.label}")
        copy_sources(wanted, folder)
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        of_its_time = True
        if wanted.role is Role.CLIENT:
            of_its_time = resolve(wanted, folder, [npm, "install", *options], say)
        else:
            run_step([npm, "ci", *options], wanted.label, cwd=folder, reason=first_lines)
        packages = json.loads((folder / "package-lock.json").read_text(encoding="utf-8")).get("packages", {})
        # A package within another's folder is that one's own copy.
        names = {path.removeprefix("node_modules/"): entry.get("version") for path, entry in packages.items()}
        own = {name: version for name, version in names.items() if version and "node_modules/" not in name}
        return Installed(own, None if of_its_time else datetime.now(UTC).date().isoformat())

    def places(self, folder: Path) -> dict[str, str]:
        return {"node": needed("node", "the program", REMEDY), "built": str(folder)}

    def stands(self, folder: Path) -> bool:
        return (folder / "package.json").is_file()

    def runs_on(self) -> dict[str, str]:
        return {"node": asked(["node", "--version"], r"v(\S+)")}


def resolve(wanted: Wanted, folder: Path, command: list[str], say: Say) -> bool:
    """Installs a release beside the dependencies of its time; whether it could be.

    A mirror knows a package's time from when it first had it: where it had a dependency later than the release, that
    time can't be gone back to, and today's are better than none. Of all that may go wrong, npm calls this `ETARGET`.
    """
    install, package = wanted.adapter.install, client_releases(wanted).package
    uploaded = find(package, parse_selection(wanted.version), say, kind=install.kind.value).uploaded
    if install.as_of_release and uploaded is not None:
        as_of = (uploaded + timedelta(hours=install.margin_hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
        done = run_child([*command, f"--before={as_of}"], INSTALL_LIMIT_S, cwd=folder)
        if done.timed_out or not NOTHING_SO_OLD.search(done.stderr):
            expect_success(done, wanted.label, INSTALL_LIMIT_S, first_lines)
            return True
        say(f"{wanted.label}: {first_lines(done.stderr)}; going on with today's dependencies")
        # What the first attempt left must not be built upon.
        shutil.rmtree(folder / "node_modules", ignore_errors=True)
        (folder / "package-lock.json").unlink(missing_ok=True)
    run_step(command, wanted.label, cwd=folder, reason=first_lines)
    return not install.as_of_release or uploaded is None


def first_lines(text: str) -> str:
    """npm says what is wrong first, and then how it is used."""
    lines = [line.removeprefix("npm error").strip() for line in text.splitlines() if line.startswith("npm error")]
    told = [line for line in lines if line and not line.startswith("code ")]
    return in_one_line("\n".join(told[:3]) or text)
