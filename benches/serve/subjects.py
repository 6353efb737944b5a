"""The compared servers: their builds, their commands and the sources of their versions."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from process import run_to_end

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILT = ROOT / "target" / "bench-serve"
SERVERS = HERE / "servers"

IMPORTABLE = (("PYTHONPATH", str(ROOT / "python")),)
"""Path of mcpace, for environments in which it isn't installed."""

NGINX = str(SERVERS / "nginx" / "server.py")
TOWER_MCP = str(BUILT / "tower-mcp" / "release" / "tower-mcp-echo")
PROTOCOLS = BUILT / "protocols" / "release"

LEGACY = "2025-06-18"
MODERN = "2026-07-28"

MODES = ("json", "sse", "auto")
FOREIGN_MODES = ("json", "sse")


@dataclass(frozen=True)
class Subject:
    """One server process; a row of the table for each revision that it is called in."""

    name: str
    mode: str
    command: tuple[str, ...]
    """Command that starts the server. `{port}` and `{address}` are replaced by the port and address to listen on."""
    built_by: Callable[[], None]
    revisions: tuple[str, ...] = (LEGACY,)
    tools: int = 1
    environment: tuple[tuple[str, str], ...] = ()
    events_only: bool = False
    """Whether the generator accepts events only, for servers that prefer JSON."""

    @property
    def label(self) -> str:
        """Name and mode, as `--only` takes them."""
        return f"{self.name}/{self.mode}" if self.tools == 1 else f"{self.name}/{self.mode}/{self.tools}-tools"

    @property
    def title(self) -> str:
        """Name and mode, as tables show them."""
        return f"{self.name}, {self.mode}"


class Missing(Exception):
    """A required program is missing; the message says how to install it."""


def subjects() -> list[Subject]:
    """Every server of the comparison, in the order of the table."""
    examples = BUILT / "mcpace" / "release" / "examples"
    echo, rmcp = str(examples / "echo"), str(BUILT / "rmcp" / "release" / "rmcp-echo")
    both = (LEGACY, MODERN)
    go = str(BUILT / "go-sdk" / "go-sdk")
    typescript = str(BUILT / "typescript-sdk" / "server.mjs")
    many = (echo, "{address}", "json", "stateless", "100")
    return [
        Subject("floor", "json", (str(examples / "floor"), "{address}"), build_mcpace),
        *(Subject("mcpace-rust", mode, (echo, "{address}", mode, "stateless"), build_mcpace, both) for mode in MODES),
        Subject("mcpace-rust", "json", many, build_mcpace, tools=100),
        Subject("nginx", "json", (sys.executable, NGINX, "{port}", str(BUILT / "nginx")), build_nginx),
        Subject("rmcp", "json", (rmcp, "{port}", "json", "default"), build_rmcp),
        Subject("rmcp", "sse", (rmcp, "{port}", "sse", "default"), build_rmcp),
        Subject("rmcp-nodelay", "sse", (rmcp, "{port}", "sse", "nodelay"), build_rmcp),
        *(
            Subject("tower-mcp", mode, (TOWER_MCP, "{port}", mode, "stateless", "1"), build_tower_mcp)
            for mode in FOREIGN_MODES
        ),
        *(Subject("go-sdk", mode, (go, "{port}", mode), build_go) for mode in FOREIGN_MODES),
        *(
            Subject("typescript-sdk", mode, ("node", typescript, "{port}", mode), build_typescript)
            for mode in FOREIGN_MODES
        ),
        *mcpace_python_subjects(),
        *fast_python_subjects(),
        *python_subjects("python-mcp", build_python_mcp, "stateless", "0"),
        *python_subjects("fastmcp", build_fastmcp),
    ]


def python_subjects(name: str, build: Callable[[], None], *more: str) -> list[Subject]:
    """A Python server in both modes, in its environment."""
    return [Subject(name, mode, (*script(name), "{port}", mode, *more), build) for mode in FOREIGN_MODES]


def script(name: str) -> tuple[str, str]:
    """The program of a Python server in its environment."""
    return str(BUILT / name / "bin" / "python"), str(SERVERS / name / "server.py")


def fast_python_subjects() -> list[Subject]:
    """Python servers that are known as fast: robyn with its own support of MCP, and granian with a tool by hand."""
    granian = (str(BUILT / "granian" / "bin" / "granian"), "--no-log", "--port", "{port}", "--loop", "uvloop")
    return [
        Subject("granian", "json", (*granian, str(SERVERS / "granian" / "server.py")), build_granian),
        Subject("robyn", "json", (*script("robyn"), "{port}", "--disable-openapi", "--log-level", "WARN"), build_robyn),
    ]


def mcpace_python_subjects() -> list[Subject]:
    """mcpace's Python server with synchronous and asynchronous tools, and an adopted server object of the official
    SDK."""
    own = str(SERVERS / "mcpace-python" / "server.py")
    official = str(SERVERS / "python-mcp" / "server.py")
    mcpace, adopting = (sys.executable,), (str(BUILT / "mcpace-adopted" / "bin" / "python"),)
    servers = (
        ("mcpace-python-sync", mcpace, f"{own}:sync", build_mcpace_python, ()),
        ("mcpace-python-async", mcpace, f"{own}:asynchronous", build_mcpace_python, ()),
        ("mcpace-adopted", adopting, f"{official}:mcp", build_mcpace_adopted, IMPORTABLE),
    )
    return [
        Subject(
            name, mode, (*python, *serve(server, json=mode == "json")), build, (LEGACY,), 1, environment, mode == "sse"
        )
        for name, python, server, build, environment in servers
        for mode in FOREIGN_MODES
    ]


def serve(server: str, *, json: bool = True, workers: int = 1) -> tuple[str, ...]:
    """`mcpace serve` as arguments for a Python interpreter."""
    options = ("--stateless", "--log-level", "warning", "--workers", str(workers))
    return ("-m", "mcpace", "serve", server, "--port", "{port}", *options, *(("--json-response",) if json else ()))


def stateful_echo() -> Subject:
    """mcpace with sessions, for measuring their memory."""
    echo = str(BUILT / "mcpace" / "release" / "examples" / "echo")
    return Subject("mcpace-rust", "json", (echo, "{address}", "json", "stateful"), build_mcpace)


def build_mcpace() -> None:
    """Builds mcpace's servers and the floor."""
    examples = (part for name in ("echo", "everything", "floor") for part in ("--example", name))
    cargo("--package", "mcpace-serve", *examples, target="mcpace", folder=ROOT)


def build_rmcp() -> None:
    """Builds the Rust SDK's server, in its own workspace."""
    cargo(target="rmcp", folder=SERVERS / "rmcp")


def build_tower_mcp() -> None:
    """Builds tower-mcp's server, in its own workspace."""
    cargo(target="tower-mcp", folder=SERVERS / "tower-mcp")


def build_protocols() -> None:
    """Builds the servers over HTTP/2 and TLS, in their own workspace."""
    cargo(target="protocols", folder=SERVERS / "protocols")


def build_nginx() -> None:
    """Nothing is built."""
    if shutil.which("nginx") is None:
        raise Missing("nginx is missing: apt install nginx-light; or leave it out with --only")


def cargo(*arguments: str, target: str, folder: Path) -> None:
    """Builds in release mode into a folder that no other build uses."""
    command = ("cargo", "build", "--release", "--locked", "--quiet", "--target-dir", str(BUILT / target), *arguments)
    run(command, folder, "https://rustup.rs")


def build_go() -> None:
    """Builds the Go SDK's server."""
    run(("go", "build", "-o", str(BUILT / "go-sdk" / "go-sdk"), "."), SERVERS / "go-sdk", "apt install golang")


def build_typescript() -> None:
    """Installs the TypeScript SDK beside a copy of its server, so that the sources stay clean."""
    source, target = SERVERS / "typescript-sdk", BUILT / "typescript-sdk"
    lock = target / "package-lock.json"
    fresh = lock.exists() and lock.read_bytes() == (source / "package-lock.json").read_bytes()
    shutil.copytree(source, target, dirs_exist_ok=True)
    if not fresh or not (target / "node_modules").exists():
        run(("npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"), target, "apt install npm")


def build_python_mcp() -> None:
    """Installs the Python SDK's lock into an environment of its own."""
    environment("python-mcp")


def build_mcpace_python() -> None:
    """Builds mcpace for the Python that runs this."""
    run(("make", "--silent", "build"), ROOT, "apt install make")
    if said(sys.executable, "-c", "from mcpace import _core; print(_core.DEBUG)") != "False":
        raise Missing("mcpace's compiled part is a debug build: rm .venv/.built; make build")


def build_mcpace_adopted() -> None:
    """Installs the official SDK and the requirements of mcpace's command."""
    build_mcpace_python()
    environment("mcpace-adopted")


def build_fastmcp() -> None:
    """Installs FastMCP's lock into an environment of its own."""
    environment("fastmcp")


def build_granian() -> None:
    """Installs granian's lock into an environment of its own."""
    environment("granian")


def build_robyn() -> None:
    """Installs robyn's lock into an environment of its own."""
    environment("robyn")


def environment(name: str) -> None:
    """Makes the environment hold exactly what the lock names."""
    uv = str(Path(sys.executable).parent / "uv")
    target = BUILT / name
    if not target.exists():
        run((uv, "venv", "--quiet", "--python", sys.executable, str(target)), ROOT, "make build")
    python = str(target / "bin" / "python")
    lock = str(SERVERS / name / "requirements.txt")
    run((uv, "pip", "sync", "--quiet", "--python", python, lock), ROOT, "make build")


def run(command: tuple[str, ...], folder: Path, remedy: str) -> None:
    """Runs a build step to its end."""
    if shutil.which(command[0]) is None:
        raise Missing(f"{command[0]} is missing: {remedy}; or leave its server out with --only")
    folder.mkdir(parents=True, exist_ok=True)
    run_to_end(command, folder)


def versions() -> dict[str, str]:
    """Versions of the compared servers and of the tools, from locks and from the tools' output."""
    requirement = {
        name: pinned(SERVERS / name / "requirements.txt", f"{package}==")
        for name, package in (("python-mcp", "mcp"), *((name, name) for name in ("fastmcp", "granian", "robyn")))
    }
    packages = json.loads((SERVERS / "typescript-sdk" / "package-lock.json").read_text())["packages"]
    return {
        "mcpace": said("git", "rev-parse", "--short", "HEAD"),
        "hyper": locked(ROOT / "Cargo.lock", "hyper"),
        "rmcp": locked(SERVERS / "rmcp" / "Cargo.lock", "rmcp"),
        "tower-mcp": locked(SERVERS / "tower-mcp" / "Cargo.lock", "tower-mcp"),
        "axum": locked(SERVERS / "rmcp" / "Cargo.lock", "axum"),
        "go-sdk": pinned(SERVERS / "go-sdk" / "go.mod", "require github.com/modelcontextprotocol/go-sdk "),
        "typescript-sdk": packages["node_modules/@modelcontextprotocol/sdk"]["version"],
        "express": packages["node_modules/express"]["version"],
        **requirement,
        "uvicorn": pinned(SERVERS / "python-mcp" / "requirements.txt", "uvicorn=="),
        "rustc": said("rustc", "--version").split()[1],
        "go": said("go", "env", "GOVERSION").removeprefix("go"),
        "node": said("node", "--version").removeprefix("v"),
        "python": sys.version.split()[0],
        "wrk": said("wrk", "--version").split()[1],
        "nginx": said("nginx", "-v").split("/")[-1],
        "h2load": said("h2load", "--version").split("/")[-1],
    }


def locked(lock: Path, package: str) -> str:
    """A package's version in a Cargo.lock."""
    lines = lock.read_text().splitlines()
    return lines[lines.index(f'name = "{package}"') + 1].split('"')[1]


def pinned(lock: Path, start: str) -> str:
    """The rest of the line that begins with `start`."""
    return next(line.removeprefix(start).split()[0] for line in lock.read_text().splitlines() if line.startswith(start))


def said(*command: str) -> str:
    """The output of a tool, from stdout or stderr; `unknown unknown` where the tool is missing."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return "unknown unknown"
    return (done.stdout or done.stderr).strip()
