"""Java artifacts: what the version's pom.xml names, packaged by Maven. With exact versions it is its own lock."""

from __future__ import annotations

import re
from pathlib import Path

from mcpace.lab.environments.installers.built import copy_sources, digest
from mcpace.lab.environments.installers.steps import BUILD_LIMIT_S, asked, needed, run_step
from mcpace.lab.environments.installers.wanted import Installed, Wanted
from mcpace.lab.environments.releases import Say
from mcpace.lab.environments.toolchains import REMEDIES

REMEDY = REMEDIES["maven"]
JAR = re.compile(r"(.+?)-(\d\S*)\.jar")


class Maven:
    """Releases of Java artifacts, by poms with exact versions."""

    cached = True

    def recipe(self, wanted: Wanted) -> list[object]:
        return [digest(wanted)]

    def build(self, wanted: Wanted, folder: Path, say: Say) -> Installed:
        for tool in ("java", "javac"):
            needed(tool, wanted.label, REMEDY)
        mvn = needed("mvn", wanted.label, REMEDY)
        say(f"building {wanted.label}")
        copy_sources(wanted, folder)
        # Maven takes settings and extensions from the nearest `.mvn` of the folders above: here it is this one.
        (folder / ".mvn").mkdir(exist_ok=True)
        command = [mvn, "--batch-mode", "--quiet", "--file", str(folder / "pom.xml"), "package"]
        run_step(command, wanted.label, limit_s=BUILD_LIMIT_S, cwd=folder)
        jars = [JAR.fullmatch(path.name) for path in sorted((folder / "target").rglob("*.jar"))]
        return Installed({jar[1]: jar[2] for jar in jars if jar})

    def places(self, folder: Path) -> dict[str, str]:
        return {"java": needed("java", "the program", REMEDY), "built": str(folder)}

    def stands(self, folder: Path) -> bool:
        return (folder / "target").is_dir()

    def runs_on(self) -> dict[str, str]:
        return {"java": asked(["java", "-version"], r'version "([^"]+)"')}
