"""Uses mcpace as a new user does, from the folder that `make dist` writes. try_in_roots.py runs this program in a root
without compilers.

It makes fresh virtual environments in a folder whose name has a space, installs mcpace with pip, and runs its commands
as a user who may not write to the environments. Each step prints a line with its time. The first wrong answer ends the
program with exit code 1. Standard library only.

Usage: try_wheel.py DIST WORK VERSION [--smoke | --without-extras]. `--smoke` leaves out what takes long under
emulation, `--without-extras` all that needs an extra.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

LIMIT_S = 1_800.0
ABSENT = ("cc", "gcc", "clang", "make", "cargo", "rustc", "node", "npm", "go", "java", "git", "uv", "curl")
USER = 10_001
CALCULATOR = '''
from mcpace import MCPServer

mcp = MCPServer("calculator")

@mcp.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b

if __name__ == "__main__":
    mcp.run()
'''
CLIENT = """
import sys
from mcpace import SyncClient

for server in (sys.argv[1], [sys.executable, "calculator.py"]):
    with SyncClient(server) as client:
        assert client.call_tool("add", {"a": 2, "b": 3}).structured_content == {"result": 5}
print("both answers are right")
"""
TEST = """
from calculator import mcp

def test_add(mcp_client):
    assert mcp_client(mcp).call_tool("add", {"a": 2, "b": 3}).structured_content == {"result": 5}

def test_fails(mcp_client):
    assert mcp_client(mcp).call_tool("add", {"a": 2, "b": 3}).structured_content == {"result": 6}
"""
ADD = ("--tool", "add", "--args", '{"a": 2, "b": 3}')


class Wrong(Exception):
    """A step had another result than it must have."""


class Trial:
    """One user's folder, with the environments `bare` and `lab`."""

    def __init__(self, dist: Path, work: Path, version: str) -> None:
        self.dist, self.version = dist, version
        self.tools, self.home = work / "my tools", work / "home"
        for folder in (self.tools, self.home / "runs"):
            folder.mkdir(parents=True)
        for name, text in (("calculator.py", CALCULATOR), ("client.py", CLIENT), ("test_calculator.py", TEST)):
            (self.home / name).write_text(text)
        self.owner = {}
        if os.geteuid() == 0 and Path("/proc/self/uid_map").read_text().split()[2] != "1":
            self.owner = {"user": USER, "group": USER, "extra_groups": []}
            for path in (self.home, *self.home.iterdir()):
                os.chown(path, USER, USER)

    def words(self, environment: str, words: tuple[str, ...]) -> list[str]:
        """The command line of a program of an environment."""
        return [str(self.tools / environment / "bin" / words[0]), *words[1:]]

    def options(self) -> dict[str, object]:
        """How each command of the user runs: in the home folder, with a PATH of the system's programs only."""
        environment = {**os.environ, "HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin", "NO_COLOR": "1"}
        return {"cwd": self.home, "env": environment, **self.owner}

    def install(self, environment: str, *requirements: str) -> None:
        """Makes an environment with pip alone, and installs the requirements from the folder and the package index."""
        subprocess.run([sys.executable, "-m", "venv", self.tools / environment], check=True, timeout=LIMIT_S)
        self.pip(environment, *requirements)

    def pip(self, environment: str, *requirements: str) -> None:
        """Installs the requirements, and builds nothing."""
        words = ("python", "-m", "pip", "install", "--quiet", "--no-cache-dir", "--only-binary", ":all:")
        line = self.words(environment, (*words, "--find-links", str(self.dist), *requirements))
        subprocess.run(line, check=True, timeout=LIMIT_S)

    def run(self, environment: str, *words: str, code: int = 0, shows: str = "") -> str:
        """Runs a program of an environment and returns what it prints.

        :raises Wrong: its exit code is another, its output lacks ``shows``, or it prints a traceback.
        """
        done = subprocess.run(
            self.words(environment, words),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=LIMIT_S, check=False, **self.options(),
        )  # fmt: skip
        if done.returncode != code or shows not in done.stdout or "Traceback" in done.stdout:
            raise Wrong(f"{words} ended with {done.returncode} (wanted: {code}, {shows!r}):\n{done.stdout}")
        return done.stdout

    @contextlib.contextmanager
    def running(self, environment: str, *words: str) -> Iterator[str]:
        """Runs a server of an environment, gives the URL that it prints, and ends it by SIGTERM."""
        options = {**self.options(), "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        with subprocess.Popen(self.words(environment, words), stdin=subprocess.DEVNULL, **options) as server:
            try:
                seen = ""
                for line in server.stdout:  # try_in_roots.py limits the time of the whole program
                    seen += line
                    if found := re.search(r"http://[\d.]+:\d+\S*", line):
                        yield found[0]
                        break
                else:
                    raise Wrong(f"{words} prints no URL:\n{seen}")
                server.send_signal(signal.SIGTERM)
                code = server.wait(LIMIT_S)
            finally:
                server.kill()
        if code not in (0, 130):
            raise Wrong(f"{words} ended with {code} after SIGTERM")

    def fastest(self, *words: str) -> float:
        """Shortest time of a command of the environment `bare` in seven runs, in seconds."""
        times = []
        for _ in range(7):
            began = time.monotonic()
            self.run("bare", *words)
            times.append(time.monotonic() - began)
        return min(times)


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """Prints the name of a step and the time that it took."""
    began = time.monotonic()
    yield
    print(f"  {time.monotonic() - began:7.1f} s  {name}", flush=True)


def without_extras(trial: Trial) -> None:
    """The package alone: its version, its help, the sentence of a command of the lab, and what needs no extra."""
    with step("pip install mcpace"):
        trial.install("bare", f"mcpace=={trial.version}")
    with step("--version, -h, doctor, and a command of the lab without extras"):
        trial.run("bare", "mcpace", "--version", shows=f"mcpace {trial.version}\n")
        trial.run("bare", "mcpace", "-h", shows="measure")
        trial.run("bare", "mcpace", "doctor", shows="install: pip install 'mcpace[lab]'")
        said = trial.run("bare", "mcpace", "measure", "profile:simple", code=3, shows="pip install 'mcpace[lab]'")
        if said.count("\n") != 1:
            raise Wrong(f"more than one line: {said}")
    with (
        step("serve, load, and calls of the client over HTTP and stdio"),
        trial.running("bare", "mcpace", "serve", "calculator.py", "--port", "0") as url,
    ):
        limits = ("--vus", "2", "--max-calls", "50", "--warm-up", "0s")
        run = json.loads(trial.run("bare", "mcpace", "load", url, *ADD, *limits, "--json", "--quiet"))
        if run["kind"] != "load" or run["cases"][0]["by_tool"]["add"]["ok"] != 50:
            raise Wrong(f"mcpace load: {json.dumps(run)[:4000]}")
        trial.run("bare", "python", "client.py", url, shows="both answers are right\n")
    print(f"  {trial.fastest('mcpace', '--version'):7.2f} s  fastest of seven: mcpace --version")
    empty, full = trial.fastest("python", "-c", ""), trial.fastest("python", "-c", "import mcpace")
    print(f"  {full - empty:7.2f} s  fastest of seven: import mcpace, without {empty:.2f} s of Python's own start")


def demo(trial: Trial) -> None:
    """The demo, and the time from the installation to its first line."""
    began = time.monotonic()
    trial.install("lab", f"mcpace[lab]=={trial.version}")
    installed = time.monotonic()
    words = trial.words("lab", ("mcpace", "demo", "--out", "runs/demo.json"))
    options = {**trial.options(), "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, **options) as process:
        first = process.stdout.readline()
        seen = time.monotonic()
        rest = process.stdout.read()
    if process.returncode != 0 or "Every request is sent twice" not in rest:
        raise Wrong(f"mcpace demo ended with {process.returncode}:\n{first}{rest}")
    if "<script" not in (trial.home / "report.html").read_text():
        raise Wrong("the report of the demo has no script")
    print(f"  {installed - began:7.1f} s  python -m venv, pip install 'mcpace[lab]'")
    print(f"  {seen - began:7.1f} s  from there to the first line of mcpace demo: {first.strip()}")
    print(f"  {time.monotonic() - began:7.1f} s  from there to its report")


def commands(trial: Trial) -> None:
    """The commands that need no SDK of others."""
    with step("doctor"):
        trial.run("lab", "mcpace", "doctor", shows="Present:")
    with step("measure, a server on stdio"):
        server = f"stdio:'{trial.tools}/lab/bin/python' calculator.py"
        trial.run("lab", "mcpace", "measure", server, *ADD, "--trials", "2", "--out", "measured.json")
    with step("layers"):
        few = ("--rounds", "2", "--batch", "10ms", "--warm-up", "20ms")
        trial.run("lab", "mcpace", "layers", "calculator.py:mcp", *ADD, *few, shows="socket")


def programs(trial: Trial) -> None:
    """The commands that install SDKs of others, the pages in a browser, the fixtures and uvx."""
    with step("servers, of the official SDK and of mcpace"):
        few = ("--vus", "2", "--duration", "1s", "--rounds", "1", "--warm-up", "100ms")
        trial.run("lab", "mcpace", "servers", "python@1.14.0:json", "mcpace-python:json", *few, shows="mcpace")
    with (
        step("ui"),
        trial.running("lab", "mcpace", "ui", "runs", "--port", "0", "--no-open") as url,
        urllib.request.urlopen(url, timeout=60) as page,
    ):
        if b"<script" not in page.read():
            raise Wrong("mcpace ui serves a page without a script")
    with step("pytest with the fixtures"):
        trial.pip("lab", "pytest")
        trial.run("lab", "pytest", "-q", "-p", "no:cacheprovider", code=1, shows="1 failed, 1 passed")
    with step("uvx --from 'mcpace[lab]' mcpace demo"):
        source = ("--find-links", str(trial.dist), "--from", f"mcpace[lab]=={trial.version}")
        trial.run("lab", "uvx", *source, "mcpace", "demo", shows="Every request is sent twice")


def main(words: list[str]) -> int:
    """Returns the exit code: 1 for a wrong answer."""
    dist, work, version = Path(words[0]), Path(words[1]), words[2]
    name, number = platform.libc_ver()
    libc = f"{name} {number}" if name == "glibc" else "musl"
    print(f"{os.uname().machine}, Python {sys.version.split()[0]}, {libc}")
    try:
        if found := [name for name in ABSENT if shutil.which(name)]:
            raise Wrong(f"this root has {', '.join(found)}: the wheel must be tried without")
        trial = Trial(dist, work, version)
        without_extras(trial)
        if "--smoke" in words:
            trial.install("lab", f"mcpace[lab]=={version}")
            commands(trial)
        elif "--without-extras" not in words:
            demo(trial)
            commands(trial)
            programs(trial)
    except Wrong as error:
        print(f"wrong: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
