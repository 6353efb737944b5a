"""OpenTelemetry's Java agent, and the reader of recordings, in mcpace's cache."""

from __future__ import annotations

import hashlib
from importlib import resources
from pathlib import Path

from mcpace.lab.environments.installers.steps import require_tool, run_step
from mcpace.lab.environments.releases import Say
from mcpace.lab.environments.toolchains import REMEDIES
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.inside.package_folder import ensure_folder

AGENT = "io.opentelemetry.javaagent:opentelemetry-javaagent:@VERSION@"
AGENT_SHA256 = "@SHA256@"
AGENT_LABEL = "OpenTelemetry for Java"
AGENT_JAR = "opentelemetry-javaagent.jar"
MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.5.0:copy"
READER = "ReadRecording"
READER_LABEL = "the reader of Java recordings"
OLDEST_JAVA = "11"
"""Version of the virtual machines that run the reader. Servers may be older."""


def ensure_agent(say: Say) -> Path:
    """Returns the path of the agent, and fetches it by Maven on first use.

    Raises :class:`EnvironmentProblem` where that fails.
    """

    def install(folder: Path) -> None:
        mvn = require_tool("mvn", AGENT_LABEL, REMEDIES["maven"])
        (folder / ".mvn").mkdir()  # Maven reads settings from the nearest folder of this name upwards.
        options = [f"-Dartifact={AGENT}", f"-DoutputDirectory={folder}", "-Dmdep.stripVersion=true"]
        run_step([mvn, "--batch-mode", "--quiet", MAVEN_COPY, *options], AGENT_LABEL, cwd=folder)
        digest = hashlib.sha256((folder / AGENT_JAR).read_bytes()).hexdigest()
        if digest != AGENT_SHA256:
            raise EnvironmentProblem(f"{AGENT_LABEL} can't be installed: {AGENT} has the digest {digest}, which is wrong")

    return ensure_folder("java-agent", AGENT, AGENT_LABEL, say, install) / AGENT_JAR


def ensure_reader(say: Say) -> Path:
    """Returns the folder of the compiled reader, and compiles it on first use.

    Raises :class:`EnvironmentProblem` where that fails.
    """
    source = (resources.files("mcpace.lab.inside") / "java" / f"{READER}.java").read_text(encoding="utf-8")

    def install(folder: Path) -> None:
        javac = require_tool("javac", READER_LABEL, REMEDIES["maven"])
        program = folder / f"{READER}.java"
        program.write_text(source, encoding="utf-8")
        run_step([javac, "--release", OLDEST_JAVA, "-d", str(folder), str(program)], READER_LABEL, cwd=folder)

    return ensure_folder("java-reader", source, READER_LABEL, say, install)
