"""OpenTelemetry's Java agent, and the reader of recordings, in mcpace's cache."""

from __future__ import annotations

import hashlib
from pathlib import Path

from mcpace.lab.environments.installers.steps import require_tool, run_step
from mcpace.lab.environments.releases import Say
from mcpace.lab.environments.toolchains import REMEDIES
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.inside.overlay import Overlay, ensure_overlay

SOURCES = Path(__file__).parent / "java"
AGENT_RECIPE = SOURCES / "agent.txt"
"""File with the agent's coordinates at Maven, and its digest."""
AGENT_JAR = "opentelemetry-javaagent.jar"
MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.5.0:copy"
READER = "ReadRecording"
OLDEST_JAVA = "11"
"""Version of the virtual machines that run the reader. Servers may be older."""


def fetch_agent(folder: Path, label: str) -> None:
    """Fetches the agent by Maven, which checks it against the repository's digest, and checks it against our own."""
    coordinates, digest = (folder / AGENT_RECIPE.name).read_text(encoding="utf-8").split()
    mvn = require_tool("mvn", label, REMEDIES["maven"])
    (folder / ".mvn").mkdir()  # Maven reads settings from the nearest folder of this name upwards.
    options = [f"-Dartifact={coordinates}", f"-DoutputDirectory={folder}", "-Dmdep.stripVersion=true"]
    run_step([mvn, "--batch-mode", "--quiet", MAVEN_COPY, *options], label, cwd=folder)
    found = hashlib.sha256((folder / AGENT_JAR).read_bytes()).hexdigest()
    if found != digest:
        raise EnvironmentProblem(
            f"{label} can't be installed: {coordinates} has the digest {found} in place of {digest}"
        )


def compile_reader(folder: Path, label: str) -> None:
    """Compiles the reader, so that it also runs where there is no compiler."""
    javac = require_tool("javac", label, REMEDIES["maven"])
    run_step([javac, "--release", OLDEST_JAVA, "-d", str(folder), str(folder / f"{READER}.java")], label, cwd=folder)


AGENT = Overlay("java-agent", "OpenTelemetry for Java", (AGENT_RECIPE,), fetch_agent)
RECORDING_READER = Overlay(
    "java-reader", "the reader of Java recordings", (SOURCES / f"{READER}.java",), compile_reader
)


def ensure_agent(say: Say) -> Path:
    """Returns the path of the agent. Raises :class:`EnvironmentProblem` where it can't be installed."""
    return ensure_overlay(AGENT, say) / AGENT_JAR


def ensure_reader(say: Say) -> Path:
    """Returns the folder of the reader's classes. Raises :class:`EnvironmentProblem` where it can't be compiled."""
    return ensure_overlay(RECORDING_READER, say)
