"""Node packages: what the version's package-lock.json names. No package's install script runs."""

from __future__ import annotations

import json
from pathlib import Path

from mcpace.lab.installers.locked import copy_sources, digest
from mcpace.lab.installers.steps import asked, in_one_line, needed, run_step
from mcpace.lab.installers.wanted import Wanted
from mcpace.lab.releases import Progress

REMEDY = "apt-get install nodejs npm, or see nodejs.org"


class Npm:
    """Releases of npm packages, by committed locks."""

    cached = True

    def recipe(self, wanted: Wanted) -> list[object]:
        return [digest(wanted)]

    def build(self, wanted: Wanted, folder: Path, say: Progress) -> dict[str, str]:
        needed("node", wanted.label, REMEDY)
        npm = needed("npm", wanted.label, REMEDY)
        say(f"installing {wanted.label}")
        copy_sources(wanted, folder)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        run_step(command, wanted.label, cwd=folder, reason=first_lines)
        packages = json.loads((folder / "package-lock.json").read_text(encoding="utf-8")).get("packages", {})
        # A package within another's folder is that one's own copy.
        names = {path.removeprefix("node_modules/"): entry.get("version") for path, entry in packages.items()}
        return {name: version for name, version in names.items() if version and "node_modules/" not in name}

    def places(self, folder: Path) -> dict[str, str]:
        return {"node": needed("node", "the program", REMEDY), "built": str(folder)}

    def stands(self, folder: Path) -> bool:
        return (folder / "package.json").is_file()

    def runs_on(self) -> dict[str, str]:
        return {"node": asked(["node", "--version"], r"v(\S+)")}


def first_lines(text: str) -> str:
    """npm says what is wrong first, and then how it is used."""
    lines = [line.removeprefix("npm error").strip() for line in text.splitlines() if line.startswith("npm error")]
    told = [line for line in lines if line and not line.startswith("code ")]
    return in_one_line("\n".join(told[:3]) or text)
