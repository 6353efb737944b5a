"""Instructions of a call on a server of 100 tools and of one, counted by valgrind: no other work disturbs them."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import call
import figures
from process import STOP_LIMIT_S, Process
from sessions import read
from subjects import BUILT, LEGACY, Missing, build_mcpace

BUILDS = [build_mcpace]
ECHO = str(BUILT / "mcpace" / "release" / "examples" / "echo")
CALLS = (1_000, 11_000)
COLUMNS = (figures.Column("instructions", "instructions a call"),)
TOTAL = re.compile(r"^summary: (\d+)", re.MULTILINE)


def measure() -> list[figures.Row]:
    """A row for each number of tools; the difference of two runs leaves out the start."""
    if shutil.which("valgrind") is None:
        raise Missing("valgrind is missing: apt install valgrind; or leave this part out with --only")
    rows = []
    for tools in (1, 100):
        few, many = (counted(tools, calls) for calls in CALLS)
        values = {"instructions": [(many - few) / (CALLS[1] - CALLS[0])]}
        name = "100 tools" if tools == 100 else "1 tool"
        rows.append({"case": "mcpace-rust, json", "name": name, "base": "1 tool", "rounds": values})
    return rows


def counted(tools: int, calls: int) -> int:
    """Instructions of a server's process, from its start to its end after so many calls over one connection."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "cachegrind"
        tool = ("valgrind", "-q", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={out}")
        with Process((*tool, ECHO, "{address}", "json", "stateless", str(tools))) as server:
            server.wait_until_it_listens()
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
                made = call.raw(call.Call(LEGACY), server.port)
                replies = connection.makefile("rb")
                for _ in range(calls):
                    connection.sendall(made)
                    read(replies)
            server.signal(signal.SIGTERM)
            with suppress(TimeoutExpired):
                server.child.wait(STOP_LIMIT_S)
        found = TOTAL.search(out.read_text())
    if found is None:
        raise RuntimeError("cachegrind counted nothing")
    return int(found[1])


def checks(rows: list[figures.Row]) -> dict[str, Any]:
    """The target: the instructions of a call on one tool ÷ those on 100."""
    one, hundred = (row["rounds"]["instructions"][0] for row in rows)
    return {"100 tools ÷ one, by instructions": figures.check(one / hundred, 0.97)}
