"""Java artifacts, packaged by Maven from the version's pom.xml, whose exact versions make it a lock file."""

from __future__ import annotations

import re
from pathlib import Path

from mcpace.lab.environments.installers.built import copy_sources, sources_digest
from mcpace.lab.environments.installers.protocol import Installed, InstallRequest
from mcpace.lab.environments.installers.steps import BUILD_LIMIT_S, read_version, require_tool, run_step
from mcpace.lab.environments.releases import Say
from mcpace.lab.environments.toolchains import REMEDIES

REMEDY = REMEDIES["maven"]
JAR = re.compile(r"(.+?)-(\d\S*)\.jar")


class Maven:
    """Releases of Java artifacts, by poms with exact versions."""

    cached = True

    def recipe(self, request: InstallRequest) -> list[object]:
        return [sources_digest(request)]

    def build(self, request: InstallRequest, folder: Path, say: Say) -> Installed:
        for tool in ("java", "javac"):
            require_tool(tool, request.release_label, REMEDY)
        mvn = require_tool("mvn", request.release_label, REMEDY)
        say(f"building {request.release_label}")
        copy_sources(request, folder)
        # Maven reads settings and extensions from the nearest `.mvn` folder upwards, so an empty one is created.
        (folder / ".mvn").mkdir(exist_ok=True)
        command = [mvn, "--batch-mode", "--quiet", "--file", str(folder / "pom.xml"), "package"]
        run_step(command, request.release_label, limit_s=BUILD_LIMIT_S, cwd=folder)
        jars = [JAR.fullmatch(path.name) for path in sorted((folder / "target").rglob("*.jar"))]
        return Installed({jar[1]: jar[2] for jar in jars if jar})

    def command_values(self, folder: Path) -> dict[str, str]:
        return {"java": require_tool("java", "the program", REMEDY), "built": str(folder)}

    def is_usable(self, folder: Path) -> bool:
        return (folder / "target").is_dir()

    def runtime_versions(self) -> dict[str, str]:
        return {"java": read_version(["java", "-version"], r'version "([^"]+)"')}
