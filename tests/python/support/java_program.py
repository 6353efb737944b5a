"""Java programs of tests, compiled against a release of the official SDK and the driver of PostgreSQL."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from mcpace.lab.adapters import subject as adapter_subject
from mcpace.lab.adapters.adapter import Role
from mcpace.lab.environments import environment as release_environment

RELEASE = "java@2.1.0"
SOURCES = Path(__file__).parent / "java"
DRIVER = "org.postgresql:postgresql:42.7.7"
MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.5.0:copy"
LIMIT_S = 300


def compile_program(name: str, folder: Path) -> str:
    """Compiles a program into ``folder``, and returns its class path."""
    resolved = adapter_subject.resolve_subject(RELEASE, role=Role.SERVER)
    environment = release_environment.ensure_environment(resolved.adapter, resolved.version, role=Role.SERVER)
    libraries = Path(environment.places["built"]) / "target" / "lib"
    drivers, classes = folder / "drivers", folder / "classes"
    mvn, javac = shutil.which("mvn"), shutil.which("javac")
    assert mvn is not None and javac is not None, "the environment was built with them"
    copy = [mvn, "-q", "-B", MAVEN_COPY, f"-Dartifact={DRIVER}", f"-DoutputDirectory={drivers}"]
    subprocess.run(copy, check=True, timeout=LIMIT_S, cwd=folder)
    path = os.pathsep.join([str(classes), f"{libraries}/*", f"{drivers}/*"])
    compile_ = [javac, "-g", "-d", str(classes), "-cp", path, str(SOURCES / f"{name}.java")]
    subprocess.run(compile_, check=True, timeout=LIMIT_S)
    return path
