"""mcpace's client with foreign servers: the newest release of each SDK, over HTTP and stdio. See
tests/interop/README.md."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpace import Client
from mcpace.client import MCPError
from support.interop import INSTALLED, SOURCES, fresh, keep, listening, needed, python, run, rust, typescript

LIMIT_S = 60


def python_server(name: str) -> list[str]:
    interpreter, _ = python(SOURCES / name, INSTALLED / name)
    return [interpreter, str(SOURCES / name / "server.py")]


def typescript_server(name: str) -> list[str]:
    node, _ = typescript(SOURCES / name, INSTALLED / name)
    shutil.copyfile(SOURCES / name / "server.mjs", INSTALLED / name / "server.mjs")
    return [node, str(INSTALLED / name / "server.mjs")]


def go_server(name: str) -> list[str]:
    program = INSTALLED / name / "server"
    program.parent.mkdir(parents=True, exist_ok=True)
    run([needed("go"), "build", "-mod=readonly", "-o", str(program), "./server"], SOURCES / name)
    return [str(program)]


def rust_server(name: str) -> list[str]:
    rust(SOURCES / name, INSTALLED / name)
    return [str(INSTALLED / name / "debug" / "server")]


def java_server(name: str) -> list[str]:
    java, javac, mvn = (needed(program) for program in ("java", "javac", "mvn"))
    sources, folder = SOURCES / name, INSTALLED / name
    if not fresh(folder, sources / "pom.xml"):
        shutil.rmtree(folder, ignore_errors=True)
        # Strict, so a file with a wrong checksum fails.
        maven = [mvn, "--batch-mode", "--quiet", "--strict-checksums", "--file", str(sources / "pom.xml")]
        run([*maven, "dependency:copy-dependencies", f"-DoutputDirectory={folder / 'jars'}"])
        keep(folder, sources / "pom.xml")
    jars = str(folder / "jars" / "*")
    run([javac, "--class-path", jars, "-d", str(folder / "classes"), str(sources / "Server.java")])
    # Tomcat creates its folders in the given base, by default the working directory.
    classes = os.pathsep.join([str(folder / "classes"), jars])
    return [java, f"-Dcatalina.base={folder / 'base'}", "--class-path", classes, "Server"]


# The newest revision that each speaks with a client that takes them all. Go's handler keeps sessions, and so is legacy
# over HTTP.
SERVERS = {
    "python-1": (python_server, "2025-11-25", "2025-11-25"),
    "python-2": (python_server, "2026-07-28", "2026-07-28"),
    "fastmcp": (python_server, "2026-07-28", "2026-07-28"),
    "typescript-1": (typescript_server, "2025-11-25", "2025-11-25"),
    "typescript-2": (typescript_server, "2026-07-28", "2026-07-28"),
    "go": (go_server, "2025-11-25", "2026-07-28"),
    "rmcp": (rust_server, "2026-07-28", "2026-07-28"),
    "java": (java_server, "2025-11-25", "2025-11-25"),
}


@contextmanager
def reached(command: list[str], way: str, folder: Path) -> Iterator[Any]:
    """The client's target."""
    if way == "stdio":
        yield [*command, "stdio"]
        return
    with listening([*command, "http"], folder) as url:
        yield url


@pytest.mark.network
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("way", ["http", "stdio"])
@pytest.mark.parametrize("name", SERVERS)
def test_a_foreign_server_gives_all_that_it_has(name: str, way: str, mode: str, tmp_path: Path) -> None:
    install, over_http, over_stdio = SERVERS[name]
    newest = over_http if way == "http" else over_stdio

    async def converse(target: Any) -> None:
        told: list[float] = []
        async with Client(target, mode=mode, read_timeout_seconds=LIMIT_S) as client:
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else newest)
            assert {tool.name for tool in (await client.list_tools()).tools} == {"echo", "steps"}
            echo = await client.call_tool("echo", {"text": "hello ✓"})
            assert echo.content[0].text == "hello ✓"
            await client.call_tool("steps", {}, progress_callback=lambda value, *_: told.append(value))
            assert told == [0, 1, 2]
            assert (await client.read_resource("test://static-text")).contents[0].text == "a text"
            prompt = await client.get_prompt("greeting", {"name": "Ada"})
            assert prompt.messages[0].content.text == "Hello, Ada"
            assert await fails(client)

    with reached(install(name), way, tmp_path) as target:
        asyncio.run(asyncio.wait_for(converse(target), LIMIT_S))


async def fails(client: Client) -> bool:
    """Whether a call of an unknown tool fails, in any of the SDKs' ways."""
    try:
        return (await client.call_tool("no_such_tool", {})).is_error
    except MCPError:
        return True
