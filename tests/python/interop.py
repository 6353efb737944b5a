"""Foreign SDKs at their newest, installed once by lock under `target/interop`, and what their clients are to get.

Nothing is skipped: a machine without Go, Node or Cargo fails here, since an SDK that was not run is not known to work.
"""

from __future__ import annotations

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

ROOT = Path(__file__).resolve().parents[2]
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
    """A foreign SDK: how its program is made ready, and what it speaks."""

    name: str
    install: Callable[[Path, Path], list[str]]
    """From its sources and its folder under `target/interop` to the command of the client program."""
    eras: tuple[str, ...] = ("legacy", "modern")

    def client(self) -> list[str]:
        """The command of its client program, installed."""
        return self.install(SOURCES / self.name, INSTALLED / self.name)


def python(sources: Path, folder: Path) -> list[str]:
    interpreter = folder / "bin" / "python"
    if not fresh(folder, sources / "requirements.txt"):
        run([uv(), "venv", "--quiet", "--clear", "--python", "3.11", str(folder)])
        run([uv(), "pip", "install", "--quiet", "--python", str(interpreter), "-r", str(sources / "requirements.txt")])
        keep(folder, sources / "requirements.txt")
    return [str(interpreter), str(sources / "client.py")]


def typescript(sources: Path, folder: Path) -> list[str]:
    node = needed("node")
    if not fresh(folder, sources / "package-lock.json"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copyfile(sources / name, folder / name)
        run([needed("npm"), "ci", "--no-audit", "--no-fund", "--loglevel=error"], folder)
        keep(folder, sources / "package-lock.json")
    # A module is looked for from where the program lies.
    shutil.copyfile(sources / "client.mjs", folder / "client.mjs")
    return [node, str(folder / "client.mjs")]


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
    """The 'everything' server's program, in the profile that the Rust tests are built in."""
    run([needed("cargo"), "build", "--quiet", "--locked", "-p", "mcpace-serve", "--example", "everything"], ROOT)
    return str(TARGET / "debug" / "examples" / "everything")


def holds(everything: str, client: list[str], era: str, transport: str, folder: Path) -> None:
    """A client gets all that the 'everything' server has."""
    with reached(everything, TRANSPORTS[transport], folder) as target:
        told = json.loads(run([*client, era, *target], limit_s=CLIENT_LIMIT_S))
    assert told.pop("tools") == sorted(told_tools(everything, folder))
    assert told == {
        "protocol": MODERN if era == "modern" else LEGACY,
        "server": "everything",
        "echo": "hello ✓",
        # A reply that is one JSON document has no room for what comes ahead of it.
        "progress": [] if transport == "http-json" else [0, 50, 100],
        "resource": "This is the content of the static text resource.",
        "prompt": "Prompt with arguments: arg1='one', arg2='two'",
        "missing": True,
    }


def told_tools(everything: str, folder: Path) -> list[str]:
    """The server's tools as it tells them over stdio, read without any SDK."""
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
def reached(everything: str, arguments: list[str], folder: Path) -> Iterator[list[str]]:
    """What follows the era on a client's command line."""
    if arguments == ["stdio"]:
        yield ["stdio", everything, "stdio"]
        return
    with listening([everything, *arguments], folder) as url:
        yield ["http", url]


@contextmanager
def listening(command: list[str], folder: Path) -> Iterator[str]:
    """Where a server listens that says so on its first line, and that is to be there to the end."""
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


def run(command: list[str], folder: Path | None = None, limit_s: float = INSTALL_LIMIT_S) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit_s, check=False)
    assert done.returncode == 0, (
        f"{command} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    )
    return done.stdout


def official() -> str:
    """The interpreter of an environment with the official SDK, which the Python face is held to."""
    folder = INSTALLED / f"official-{OFFICIAL.rpartition('=')[2]}"
    interpreter, mark = folder / "bin" / "python", folder / "installed"
    if not mark.exists() or mark.read_text() != OFFICIAL:
        run([uv(), "venv", "--quiet", "--clear", "--python", "3.11", str(folder)])
        run([uv(), "pip", "install", "--quiet", "--python", str(interpreter), OFFICIAL])
        mark.write_text(OFFICIAL)
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
