"""The newest releases of foreign SDKs, installed once by lock file under `target/interop`, and their expected results.

No test is skipped: a machine without Go, Node or Cargo fails, since an SDK that wasn't run isn't known to work.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "tests" / "interop"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
INSTALLED = TARGET / "interop"

INSTALL_LIMIT_S = 600
CLIENT_LIMIT_S = SERVER_LIMIT_S = 60

OFFICIAL = "mcp==2.3.0"

MODERN = "2026-07-28"
LEGACY = "2025-11-25"


@dataclass(frozen=True)
class Sdk:
    """A foreign SDK: the installation of its program, and the revisions that it supports."""

    name: str
    install: Callable[[Path, Path], list[str]]
    """From its sources and its folder under `target/interop` to the command of the client program."""
    eras: tuple[str, ...] = ("legacy", "modern")

    def client(self) -> list[str]:
        """Installs the client program and returns its command."""
        return self.install(SOURCES / self.name, INSTALLED / self.name)


def python(sources: Path, folder: Path) -> list[str]:
    interpreter, lock = folder / "bin" / "python", sources / "requirements.txt"
    with alone(folder):
        if not fresh(folder, lock):
            run([uv(), "venv", "--quiet", "--clear", "--python", "3.11", str(folder)])
            run([uv(), "pip", "install", "--quiet", "--python", str(interpreter), "-r", str(lock)])
            keep(folder, lock)
    return [str(interpreter), str(sources / "client.py")]


def typescript(sources: Path, folder: Path) -> list[str]:
    node = needed("node")
    npm_ci(sources, folder)
    # A module is looked for from where the program lies.
    shutil.copyfile(sources / "client.mjs", folder / "client.mjs")
    return [node, str(folder / "client.mjs")]


def npm_ci(sources: Path, folder: Path) -> None:
    with alone(folder):
        if fresh(folder, sources / "package-lock.json"):
            return
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copyfile(sources / name, folder / name)
        run([needed("npm"), "ci", "--no-audit", "--no-fund", "--loglevel=error"], folder)
        keep(folder, sources / "package-lock.json")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Holds a lock, so that no other test process installs into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def go(sources: Path, folder: Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    run([needed("go"), "build", "-mod=readonly", "-o", str(folder / "client"), "."], sources)
    return [str(folder / "client")]


def rust(sources: Path, folder: Path) -> list[str]:
    run([needed("cargo"), "build", "--quiet", "--locked", "--target-dir", str(folder)], sources)
    return [str(folder / "debug" / "interop-rmcp")]


SDKS = (
    Sdk("python-1", python, eras=("legacy",)),
    Sdk("python-2", python),
    Sdk("fastmcp", python),
    Sdk("typescript-1", typescript, eras=("legacy",)),
    Sdk("typescript-2", typescript),
    Sdk("go", go),
    Sdk("rmcp", rust),
)
TRANSPORTS = {
    "http-auto": ["http", "--response", "auto"],
    "http-sse": ["http", "--response", "sse"],
    "http-json": ["http", "--response", "json", "--stateless"],
    "http-stateless": ["http", "--response", "sse", "--stateless"],
    "stdio": ["stdio"],
}


def everything() -> str:
    """The 'everything' server's program, in the Cargo profile of the Rust tests."""
    run([needed("cargo"), "build", "--quiet", "--locked", "-p", "mcpace-serve", "--example", "everything"], ROOT)
    return str(TARGET / "debug" / "examples" / "everything")


def inspector() -> Callable[..., Any]:
    """Runs the Inspector's command line with its pinned Node, against an endpoint or a command."""
    sources, folder = SOURCES / "inspector", INSTALLED / "inspector"
    npm_ci(sources, folder)
    modules = folder / "node_modules"
    environment = {**os.environ, "PATH": f"{modules / 'node' / 'bin'}:{os.environ['PATH']}", "HOME": str(folder)}

    def inspect(*words: str) -> Any:
        command = [str(modules / ".bin" / "mcp-inspector"), "--cli", *words]
        return json.loads(run(command, folder, CLIENT_LIMIT_S, environment))

    return inspect


def holds(everything: str, client: list[str], era: str, transport: str, folder: Path) -> None:
    """Checks that a client gets everything that the 'everything' server has."""
    with client_words(everything, TRANSPORTS[transport], folder) as target:
        told = client_output(client, era, target)
    assert told.pop("tools") == sorted(server_tools(everything, folder))
    expected = expected_output(MODERN if era == "modern" else LEGACY)
    # A reply that is one JSON document has no room for what comes ahead of it.
    assert told == (expected | {"progress": []} if transport == "http-json" else expected)


def client_output(client: list[str], era: str, target: list[str]) -> dict[str, Any]:
    """Returns the output of a client program at a server."""
    told: dict[str, Any] = json.loads(run([*client, era, *target], limit_s=CLIENT_LIMIT_S))
    return told


def expected_output(protocol: str) -> dict[str, Any]:
    """Returns the expected output of a client program at an 'everything' server, without its tools."""
    return {
        "protocol": protocol,
        "server": "everything",
        "echo": "hello ✓",
        "progress": [0, 50, 100],
        "resource": "This is the content of the static text resource.",
        "prompt": "Prompt with arguments: arg1='one', arg2='two'",
        "missing": True,
    }


def server_tools(everything: str, folder: Path) -> list[str]:
    """Reads the server's tools over stdio, without an SDK."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    question = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}})
    done = subprocess.run(
        [everything, "stdio"], input=question + "\n", capture_output=True, text=True, timeout=30, check=True, cwd=folder
    )
    return [tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]]


@contextmanager
def client_words(everything: str, arguments: list[str], folder: Path) -> Iterator[list[str]]:
    """Yields the words that follow the era on a client's command line."""
    if arguments == ["stdio"]:
        yield ["stdio", everything, "stdio"]
        return
    with listening([everything, *arguments], folder) as url:
        yield ["http", url]


@contextmanager
def listening(command: list[str], folder: Path) -> Iterator[str]:
    """Runs a server that prints its address on its first line. Fails if it ends early."""
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    watchdog = threading.Timer(SERVER_LIMIT_S, server.kill)
    watchdog.start()
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("listening on "), (folder / "server.log").read_text()
        yield line.removeprefix("listening on ").strip()
        assert server.poll() is None, (folder / "server.log").read_text()
    finally:
        watchdog.cancel()
        server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def run(
    command: list[str],
    folder: Path | None = None,
    limit_s: float = INSTALL_LIMIT_S,
    environment: dict[str, str] | None = None,
) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit_s, check=False
    )
    assert done.returncode == 0, (
        f"{command} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    )
    return done.stdout


def official() -> str:
    """The interpreter of an environment with the official SDK, which the Python package is compared with."""
    return installed(OFFICIAL)


def installed(requirement: str) -> str:
    """The interpreter of an environment with one package, such as `mcp==2.3.0`, and its dependencies."""
    folder = INSTALLED / requirement.replace("==", "-")
    interpreter, mark = folder / "bin" / "python", folder / "installed"
    with alone(folder):
        if not mark.exists() or mark.read_text() != requirement:
            run([uv(), "venv", "--quiet", "--clear", "--python", "3.11", str(folder)])
            run([uv(), "pip", "install", "--quiet", "--python", str(interpreter), requirement])
            mark.write_text(requirement)
    return str(interpreter)


def uv() -> str:
    return shutil.which("uv") or str(ROOT / ".venv" / "bin" / "uv")


def needed(program: str) -> str:
    found = shutil.which(program)
    assert found is not None, (
        f"{program} is needed to run the foreign clients; install it, or see tests/interop/README.md"
    )
    return found


def fresh(folder: Path, lock: Path) -> bool:
    stamp = folder / "installed"
    return stamp.exists() and stamp.read_text() == digest(lock)


def keep(folder: Path, lock: Path) -> None:
    (folder / "installed").write_text(digest(lock))


def digest(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()
