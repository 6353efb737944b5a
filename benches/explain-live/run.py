"""Rates of ``mcpace explain TARGET``: servers of known kinds, and whether their layer and their cause are named.

Each kind is a real SDK's server with one tool that takes a known time. The ladder must find that time in its layer:
from 30 ms on, the layer must take most of a call; of 1 ms, which is less than some SDKs take themselves, the layer must
have at least 0.7 ms. The cause is the answer about two calls at once, which is tested from 20 ms on. The table is
Markdown. To reach: the layer in all cases, the cause in 90 %, and an answer within 45 s.
"""

from __future__ import annotations

import argparse
import json
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpace.lab.adapters.adapter import Role
from mcpace.lab.adapters.subject import resolve_subject
from mcpace.lab.environments.environment import ensure_environment
from mcpace.lab.processes.child_processes import run_child

HERE = Path(__file__).parent
TIMES_S = (0.001, 0.03, 0.3, 3.0)
OVERLAP_FROM_S = 0.02
FELT_S = 0.0007
MOST = 0.5
ANSWER_S = 45.0
START_S = 60.0
LIMIT_S = 300.0
"""Seconds after which a run of explain is ended, and counts as no answer."""
PYTHON, FASTMCP, TYPESCRIPT = "python@1.30.0", "fastmcp@3.4.11", "typescript@1.32.2"
NONE, LOCK, LOOP = "none", "one after another", "blocked-event-loop"


@dataclass(frozen=True)
class Kind:
    """One kind of server, with the expected answers."""

    name: str
    subject: str
    program: str
    layer: str = "tool"
    cause: str = NONE

    @property
    def is_stdio(self) -> bool:
        """Whether the server speaks over stdio."""
        return self.program == "stdio"


KINDS = (
    Kind("official SDK, sync tool", PYTHON, "sync", cause=LOOP),
    Kind("official SDK, async tool", PYTHON, "async"),
    Kind("official SDK, blocking call in an async tool", PYTHON, "blocking", cause=LOOP),
    Kind("official SDK, lock", PYTHON, "lock", cause=LOCK),
    Kind("official SDK, pool of one", PYTHON, "pool", cause=LOCK),
    Kind("official SDK, stateless", PYTHON, "stateless"),
    Kind("FastMCP", FASTMCP, "fastmcp"),
    Kind("TypeScript SDK", TYPESCRIPT, "http"),
    Kind("mcpace", "", "mcpace"),
    Kind("official SDK over stdio", PYTHON, "stdio"),
    Kind("TypeScript SDK over stdio", TYPESCRIPT, "stdio"),
    Kind("time in every MCP request", PYTHON, "middleware", layer="sdk"),
    Kind("time in HTTP before MCP", PYTHON, "http", layer="http"),
)


@dataclass(frozen=True)
class Answer:
    """The answer of one run of explain."""

    kind: Kind
    time_s: float
    layer: str
    layer_is_right: bool
    cause: str
    cause_is_right: bool | None
    """``None`` where the call is too short to be tested."""
    spent_s: float

    def row(self) -> str:
        """A row of the table."""
        layer = f"{self.layer} / {self.kind.layer}{'' if self.layer_is_right else ' **wrong**'}"
        cause = "–" if self.cause_is_right is None else f"{self.cause} / {self.kind.cause}"
        cause += " **wrong**" if self.cause_is_right is False else ""
        return f"| {self.kind.name} | {self.time_s * 1000:g} ms | {layer} | {cause} | {self.spent_s:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="servers that are explained at the same time")
    parser.add_argument("--times", type=float, nargs="*", default=TIMES_S, help="times of the tool, in seconds")
    parser.add_argument("--kinds", nargs="*", help="names of the kinds of servers; all, if left out")
    options = parser.parse_args()
    for subject in (PYTHON, FASTMCP, TYPESCRIPT):
        environment_of(subject)
    cases = [
        (kind, time_s) for time_s in options.times for kind in KINDS if not options.kinds or kind.name in options.kinds
    ]
    print(
        "| server | time | layer / expected | calls at once / expected | seconds |\n|---|---|---|---|---|", flush=True
    )
    answers: list[Answer] = []
    with ThreadPoolExecutor(options.jobs) as threads:
        for answer in threads.map(lambda case: explain_case(*case), cases):
            answers.append(answer)
            print(answer.row(), flush=True)
    causes = [one.cause_is_right for one in answers if one.cause_is_right is not None]
    print(f"\nLayer: {sum(one.layer_is_right for one in answers)} of {len(answers)}.")
    print(f"Cause: {sum(causes)} of {len(causes)}.")
    slowest_s = max(one.spent_s for one in answers)
    print(f"Within {ANSWER_S:.0f} s: {sum(one.spent_s <= ANSWER_S for one in answers)}; slowest {slowest_s:.0f} s.")


def environment_of(subject: str) -> Any:
    """Environment of an SDK's release, which is built if necessary."""
    resolved = resolve_subject(subject, role=Role.SERVER)
    return ensure_environment(resolved.adapter, resolved.version, role=Role.SERVER)


def server_command(kind: Kind, time_s: float, port: int) -> list[str]:
    """Command line of the server."""
    arguments = [kind.program, str(time_s), str(port)]
    if kind.subject == TYPESCRIPT:
        return ["node", str(HERE / "server.mjs"), *arguments, str(environment_of(TYPESCRIPT).path / "node_modules")]
    python = environment_of(kind.subject).places["python"] if kind.subject else sys.executable
    return [python, str(HERE / "server.py"), *arguments]


@contextmanager
def running_server(command: list[str], port: int) -> Iterator[str]:
    """Runs a server until the block ends, and returns its address as soon as it accepts connections."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + START_S
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    if process.poll() is not None or time.monotonic() > until:
                        raise
                    time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


def explain_case(kind: Kind, time_s: float) -> Answer:
    """Explains a server of one kind, and compares the answer with the expected one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = server_command(kind, time_s, port)
    if kind.is_stdio:
        return ask_explain(kind, time_s, f"stdio:{shlex.join(command)}")
    with running_server(command, port) as address:
        return ask_explain(kind, time_s, address)


def ask_explain(kind: Kind, time_s: float, target: str) -> Answer:
    """Runs ``mcpace explain`` and reads its answer."""
    start = time.monotonic()
    command = [str(Path(sys.executable).parent / "mcpace"), "explain", target, "--json"]
    done = run_child(command, LIMIT_S)
    spent_s = time.monotonic() - start
    if done.code:
        print(done.stderr.strip() or f"no answer in {LIMIT_S:.0f} s", file=sys.stderr)
        return Answer(kind, time_s, "no answer", False, "no answer", False, spent_s)
    ladder = json.loads(done.stdout).get("ladder") or {"layers": [], "overlaps": [], "cause": None}
    layers = {one["code"]: one["seconds"] for one in ladder["layers"]}
    largest = max(layers, key=lambda code: layers[code], default="none")
    if time_s >= OVERLAP_FROM_S:
        is_right = largest == kind.layer and layers[largest] >= MOST * sum(layers.values())
    else:
        is_right = layers.get(kind.layer, 0.0) >= FELT_S
        largest = kind.layer if is_right else largest
    cause = cause_words(ladder)
    return Answer(
        kind, time_s, largest, is_right, cause, cause == kind.cause if time_s >= OVERLAP_FROM_S else None, spent_s
    )


def cause_words(ladder: dict[str, Any]) -> str:
    """The answer about two calls at once."""
    if ladder["cause"] or not ladder["overlaps"]:
        return ladder["cause"] or "not tested"
    order = ladder["overlaps"][0]["order"]
    return {"parallel": NONE, "serial": LOCK}.get(order, order)


if __name__ == "__main__":
    main()
