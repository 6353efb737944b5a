"""The origin of Java classes: the server's author, or a library, by the class path of the virtual machine.

Design constraint: A recording names classes and not the files that they came from. The files of the class path tell: a
folder holds the author's classes, and so does the jar that is run; other jars are libraries. Where a jar holds both, as
`shade` and Spring Boot make them, its own folders and the groups of its artifacts tell.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

INSTRUMENTATION = "io.opentelemetry."
"""Packages of the agent and of its interfaces. Those interfaces are the virtual machine's own to the recording."""
KNOWN = {
    "ch.qos.logback": "logback",
    "com.fasterxml.jackson": "jackson",
    "com.google.common": "guava",
    "com.google.gson": "gson",
    "com.mongodb": "mongodb",
    "com.mysql": "mysql",
    "com.networknt": "json-schema-validator",
    "com.zaxxer.hikari": "hikari",
    "io.grpc": "grpc",
    "io.lettuce": "lettuce",
    "io.micronaut": "micronaut",
    "io.modelcontextprotocol": "mcp",
    "io.netty": "netty",
    "io.quarkus": "quarkus",
    "io.vertx": "vertx",
    "jakarta": "jakarta",
    "javax": "javax",
    "kotlin": "kotlin",
    "kotlinx": "kotlinx",
    "net.bytebuddy": "byte-buddy",
    "okhttp3": "okhttp",
    "okio": "okio",
    "org.apache.catalina": "tomcat",
    "org.apache.coyote": "tomcat",
    "org.apache.hc": "httpclient",
    "org.apache.http": "httpclient",
    "org.apache.tomcat": "tomcat",
    "org.eclipse.jetty": "jetty",
    "org.h2": "h2",
    "org.hibernate": "hibernate",
    "org.postgresql": "postgresql",
    "org.reactivestreams": "reactive-streams",
    "org.slf4j": "slf4j",
    "org.springframework": "spring",
    "org.sqlite": "sqlite-jdbc",
    "reactor": "reactor",
    "redis.clients": "jedis",
    "scala": "scala",
    "tools.jackson": "jackson",
}
"""Libraries by the beginning of their packages, for classes of which no file tells."""
INSTRUMENTATION_LIBRARY = "opentelemetry"
BROUGHT_BY_AGENT = ("kotlin", "net.bytebuddy", "okhttp3", "okio", "org.objectweb.asm")
"""Packages of libraries that the agent brings, and that a server may have as well."""
VERSION = re.compile(r"-\d[\w.+-]*$")
BOOT_CLASSES, BOOT_LIBRARIES = "BOOT-INF/classes/", "BOOT-INF/lib/"
POM = re.compile(r"META-INF/maven/([^/]+)/([^/]+)/pom\.properties")
MOST_FILES = 2_000
MOST_CLASSES = 1_000_000
"""Files of a class path, and names in all jars, that are read at most."""
MOST_MANIFEST_BYTES = 1 << 20


@dataclass
class ClassFiles:
    """One file or folder of a class path, with the packages in it."""

    path: Path
    library: str
    """Name of the library that the classes are of, unless they are the author's."""
    packages: frozenset[str] = frozenset()
    """Packages of a jar, with slashes. Empty for folders, which are looked into."""
    own_packages: frozenset[str] = frozenset()
    """Packages that a jar keeps apart from those of its libraries."""
    artifacts: dict[str, str] = field(default_factory=dict)
    """Artifacts that were merged into a jar, by their groups."""
    manifest: dict[str, str] = field(default_factory=dict)

    def has(self, package: str) -> bool:
        if self.path.is_dir():
            return (self.path / package).is_dir()
        return package in self.packages


class JavaPackages:
    """Tells the author's classes from those of libraries, for one virtual machine."""

    def __init__(self, class_path: str, command: str, *, has_agent: bool = False) -> None:
        """``class_path`` and ``command`` are the properties ``java.class.path`` and ``sun.java.command``.

        ``has_agent``: whether OpenTelemetry's agent was in the virtual machine.
        """
        self._has_agent = has_agent
        self._class_path = class_path
        self._started = command.split(" ", 1)[0]
        self._room = MOST_CLASSES
        self._known: dict[str, str | None] = {}

    def library(self, class_name: str) -> str | None:
        """Name of the library that a class is of; ``None`` for the author's."""
        package = class_name.rpartition(".")[0]
        if package not in self._known:
            self._known[package] = self._find_library(package)
        return self._known[package]

    def _find_library(self, package: str) -> str | None:
        if f"{package}.".startswith(INSTRUMENTATION):
            return INSTRUMENTATION_LIBRARY
        folder = package.replace(".", "/")
        for files in self._files:
            if folder in files.own_packages:
                return None
            if files.has(folder):
                return self._library_in(files, package)
        if self._has_agent and any(_is_beneath(package, brought) for brought in BROUGHT_BY_AGENT):
            return INSTRUMENTATION_LIBRARY
        return _known_library(package)

    def _library_in(self, files: ClassFiles, package: str) -> str | None:
        is_started = str(files.path) == self._started or "Start-Class" in files.manifest
        if files.path.is_dir() or self._is_beneath_main_class(package):
            return None
        if is_started or files.has(self._main_package.replace(".", "/")):
            groups = sorted(files.artifacts, key=len, reverse=True)
            group = next((group for group in groups if _is_beneath(package, group)), None)
            own = next((group for group in groups if _is_beneath(self._main_package, group)), None)
            if group is not None and group != own:
                return _known_library(package) or files.artifacts[group]
            return _known_library(package)
        return files.library

    @cached_property
    def _files(self) -> list[ClassFiles]:
        """The class path, with the files that the manifests of its jars and the jars themselves add."""
        found: list[ClassFiles] = []
        waiting = [Path(entry) for entry in self._class_path.split(os.pathsep) if entry]
        seen: set[Path] = set()
        while waiting and len(found) < MOST_FILES:
            path = waiting.pop(0)
            if path in seen:
                continue
            seen.add(path)
            files = self._read_files(path)
            if files is not None:
                found.append(files)
                classes = files.manifest.get("Class-Path", "").split()
                waiting += [path.parent / entry for entry in classes if "://" not in entry]
        return found

    def _read_files(self, path: Path) -> ClassFiles | None:
        library = VERSION.sub("", path.stem)
        if path.is_dir():
            return ClassFiles(path, library)
        if not path.is_file():
            return None
        try:
            with zipfile.ZipFile(path) as jar:
                names = jar.namelist()[: self._room]
                self._room -= len(names)
                boot = [name.removeprefix(BOOT_CLASSES) for name in names if name.startswith(BOOT_CLASSES)]
                poms = [found for found in map(POM.fullmatch, names) if found]
                manifest = _read_manifest(jar) if "META-INF/MANIFEST.MF" in names else {}
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
            return None
        artifacts = {pom[1]: pom[2] for pom in poms}
        return ClassFiles(path, library, _packages(names), _packages(boot), artifacts, manifest)

    @cached_property
    def _main_package(self) -> str:
        """Package of the class that was started; of a jar, its manifest tells."""
        name = self._started
        if name.endswith((".jar", ".war")):
            of_jar = next((files.manifest for files in self._files if str(files.path) == name), {})
            name = of_jar.get("Start-Class") or of_jar.get("Main-Class", "")
        # A class may be given with its module: com.example/com.example.Main.
        return name.rpartition("/")[2].rpartition(".")[0]

    def _is_beneath_main_class(self, package: str) -> bool:
        """Whether a package is the author's by its name: it shares the first parts of the main class's package."""
        main = self._main_package.split(".")[:3]
        return len(main) >= 2 and _is_beneath(package, ".".join(main)) and _known_library(self._main_package) is None


def _packages(names: list[str]) -> frozenset[str]:
    folders: Iterator[str] = (str(PurePosixPath(name).parent) for name in names if name.endswith(".class"))
    return frozenset("" if folder == "." else folder for folder in folders)


def _read_manifest(jar: zipfile.ZipFile) -> dict[str, str]:
    """The main section of a jar's manifest. A line that begins with a blank goes on with the line before."""
    if jar.getinfo("META-INF/MANIFEST.MF").file_size > MOST_MANIFEST_BYTES:
        return {}
    text = jar.read("META-INF/MANIFEST.MF").decode("utf-8", "replace").replace("\r\n", "\n")
    main = text.split("\n\n", 1)[0].replace("\n ", "")
    pairs = (line.split(": ", 1) for line in main.split("\n") if ": " in line)
    return {pair[0]: pair[1].strip() for pair in pairs}


def _is_beneath(package: str, prefix: str) -> bool:
    return package == prefix or package.startswith(f"{prefix}.")


def _known_library(package: str) -> str | None:
    return next((name for prefix, name in KNOWN.items() if _is_beneath(package, prefix)), None)
