"""OpenTelemetry's Java agent, async-profiler, and the reader of recordings, in mcpace's cache."""

from __future__ import annotations

import hashlib
import platform
import sys
import zipfile
from pathlib import Path

from mcpace.lab.environments.installers.steps import require_tool, run_step
from mcpace.lab.environments.releases import Say
from mcpace.lab.environments.toolchains import REMEDIES
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.inside.overlay import Overlay, ensure_overlay

SOURCES = Path(__file__).parent / "java"
AGENT_RECIPE = SOURCES / "agent.txt"
PROFILER_RECIPE = SOURCES / "profiler.txt"
"""Files with the coordinates at Maven, and the digest."""
AGENT_JAR = "opentelemetry-javaagent.jar"
PROFILER_JAR = "async-profiler.jar"
PROFILER_LIBRARIES = {
    ("linux", "x86_64"): "linux-x64/libasyncProfiler.so",
    ("linux", "aarch64"): "linux-arm64/libasyncProfiler.so",
    ("darwin", "x86_64"): "macos/libasyncProfiler.so",
    ("darwin", "arm64"): "macos/libasyncProfiler.so",
}
"""Libraries in the jar, by system and machine."""
MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.5.0:copy"
READER = "ReadRecording"
OLDEST_JAVA = "11"
"""Version of the virtual machines that run the reader. Servers may be older."""


def fetch_agent(folder: Path, label: str) -> None:
    """Fetches the agent."""
    _fetch_jar(folder, AGENT_RECIPE, AGENT_JAR, label)


def fetch_profiler(folder: Path, label: str) -> None:
    """Fetches the profiler, and takes its library for this machine out of the jar."""
    _fetch_jar(folder, PROFILER_RECIPE, PROFILER_JAR, label)
    with zipfile.ZipFile(folder / PROFILER_JAR) as jar:
        jar.extract(PROFILER_LIBRARIES[sys.platform, platform.machine()], folder)


def _fetch_jar(folder: Path, recipe: Path, jar: str, label: str) -> None:
    """Fetches a jar by Maven, which checks it against the repository's digest, and checks it against our own."""
    coordinates, digest = (folder / recipe.name).read_text(encoding="utf-8").split()
    mvn = require_tool("mvn", label, REMEDIES["maven"])
    (folder / ".mvn").mkdir()  # Maven reads settings from the nearest folder of this name upwards.
    options = [f"-Dartifact={coordinates}", f"-DoutputDirectory={folder}", "-Dmdep.stripVersion=true"]
    run_step([mvn, "--batch-mode", "--quiet", MAVEN_COPY, *options], label, cwd=folder)
    found = hashlib.sha256((folder / jar).read_bytes()).hexdigest()
    if found != digest:
        raise EnvironmentProblem(
            f"{label} can't be installed: {coordinates} has the digest {found} in place of {digest}"
        )


def compile_reader(folder: Path, label: str) -> None:
    """Compiles the reader, so that it also runs where there is no compiler."""
    javac = require_tool("javac", label, REMEDIES["maven"])
    run_step([javac, "--release", OLDEST_JAVA, "-d", str(folder), str(folder / f"{READER}.java")], label, cwd=folder)


AGENT = Overlay("java-agent", "OpenTelemetry for Java", (AGENT_RECIPE,), fetch_agent)
PROFILER = Overlay("java-profiler", "async-profiler", (PROFILER_RECIPE,), fetch_profiler)
RECORDING_READER = Overlay(
    "java-reader", "the reader of Java recordings", (SOURCES / f"{READER}.java",), compile_reader
)


def ensure_agent(say: Say) -> Path:
    """Returns the path of the agent. Raises :class:`EnvironmentProblem` where it can't be installed."""
    return ensure_overlay(AGENT, say) / AGENT_JAR


def ensure_profiler(say: Say) -> Path | None:
    """Returns the path of the profiler's library; ``None`` where there is none for this machine.

    Raises :class:`EnvironmentProblem` where it can't be installed.
    """
    library = PROFILER_LIBRARIES.get((sys.platform, platform.machine()))
    return ensure_overlay(PROFILER, say) / library if library is not None else None


def ensure_reader(say: Say) -> Path:
    """Returns the folder of the reader's classes. Raises :class:`EnvironmentProblem` where it can't be compiled."""
    return ensure_overlay(RECORDING_READER, say)
