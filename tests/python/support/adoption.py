"""Environments of other SDKs, and their example servers in pairs: with the SDK's own transport, and adopted.

Everything is installed once, by lock file, under `target/adopt`. mcpace itself isn't installed there: its package is
added to the path, since its compiled part works with every Python since 3.11.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.interop import alone

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "tests" / "adopt"
INSTALLED = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "adopt"
INSTALL_LIMIT_S = 600
START_LIMIT_S = 120

MODERN = "2026-07-28"
LEGACY = "2025-11-25"


@dataclass(frozen=True)
class Sdk:
    """A release line of an SDK."""

    name: str
    examples: str
    """The folder of its example servers."""
    revisions: tuple[str, ...]


SDKS = (
    Sdk("mcp-1", "mcp-1", (LEGACY,)),
    Sdk("mcp-2", "mcp-2", (LEGACY, MODERN)),
    Sdk("fastmcp-3", "fastmcp", (LEGACY,)),
    Sdk("fastmcp-4", "fastmcp", (LEGACY, MODERN)),
)


@dataclass(frozen=True, order=True)
class Subject:
    """One example server, served in one way."""

    example: str
    mode: str
    """``json`` or ``sse``."""
    sessions: str = "sessions"


@dataclass(frozen=True)
class Pair:
    """The ports of a subject's two servers, and the first messages of the adopted one."""

    original: int
    adopted: int
    notes: tuple[str, ...]


def interpreter(sdk: Sdk) -> Path:
    """Returns the Python of an environment with the SDK."""
    return installed(sdk.name, SOURCES / "environments" / f"{sdk.name}.txt")


def installed(name: str, lock: Path, version: str = "3.11") -> Path:
    """Installs a lock file's packages and returns the Python of the environment."""
    folder = INSTALLED / name
    python, stamp = folder / "bin" / "python", folder / "installed"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    with alone(folder):
        if not stamp.exists() or stamp.read_text() != digest:
            uv = shutil.which("uv") or str(ROOT / ".venv" / "bin" / "uv")
            _run([uv, "venv", "--quiet", "--clear", "--python", version, str(folder)])
            # The lock is whole; its resolution may have needed an override.
            _run([uv, "pip", "install", "--quiet", "--no-deps", "--python", str(python), "-r", str(lock)])
            stamp.write_text(digest)
    return python


@contextmanager
def program(
    sdk: Sdk, name: str, arguments: list[str], errors: int | None = None, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """Runs a program of tests/adopt in an environment during the ``with`` block. ``errors``: its stderr."""
    command = [str(interpreter(sdk)), "-W", "ignore", str(SOURCES / f"{name}.py"), *arguments]
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "FASTMCP_CHECK_FOR_UPDATES": "off", **environment}
    running = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=variables
    )
    watchdog = threading.Timer(START_LIMIT_S, running.kill)
    watchdog.start()
    try:
        yield running
    finally:
        watchdog.cancel()
        running.kill()
        running.communicate()


@contextmanager
def served(sdk: Sdk, subjects: list[Subject]) -> Iterator[dict[Subject, Pair]]:
    """Serves each subject twice: by its SDK on uvicorn, and adopted."""
    folder = SOURCES / "servers" / sdk.examples

    def arguments(adopted: bool) -> list[str]:
        # The SDK answers without a stream where it can, in the newest revision; that is our mode `auto`.
        named = {"json": "json", "sse": "auto" if adopted and one_is_modern else "sse", "auto": "auto"}
        return [f"{folder / one.example}.py:{named[one.mode]}:{one.sessions}" for one in subjects]

    one_is_modern = MODERN in sdk.revisions
    with program(sdk, "original", arguments(False)) as original, program(sdk, "adopted", arguments(True)) as adopted:
        assert original.stdout is not None and adopted.stdout is not None
        lines = [stream.readline() for stream in (original.stdout, adopted.stdout, adopted.stdout)]
        assert all(lines), "a server did not start"
        ports, adopted_ports, notes = (json.loads(line) for line in lines)
        yield {
            subject: Pair(port, adopted_port, tuple(said))
            for subject, port, adopted_port, said in zip(subjects, ports, adopted_ports, notes, strict=True)
        }


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stderr[-4000:]}"
