"""Cold start: from the start of a server's process to its first reply, over HTTP and over stdio."""

from __future__ import annotations

import sys
from typing import Any

import figures
import first_reply
from subjects import (
    BUILT,
    SERVERS,
    TOWER_MCP,
    Subject,
    build_fastmcp,
    build_mcpace,
    build_python_mcp,
    build_tower_mcp,
    script,
)

BUILDS = [build_mcpace, build_python_mcp, build_fastmcp, build_tower_mcp]
STDIO: dict[str, tuple[str, ...]] = {
    "python-mcp": (*script("python-mcp"), "stdio"),
    "mcpace-rust": (str(BUILT / "mcpace" / "release" / "examples" / "everything"), "stdio"),
    "mcpace-python": (sys.executable, str(SERVERS / "mcpace-python" / "server.py")),
    "tower-mcp": (TOWER_MCP, "stdio"),
    "fastmcp": (*script("fastmcp"), "stdio"),
}
COLUMNS = (figures.Column("first_reply_s", "first reply, ms", 1e3),)


def measure(chosen: list[Subject], rounds: int) -> list[figures.Row]:
    """A row for each server and transport. The base over stdio is the official SDK, because bare hyper has none."""
    http = [
        (
            {"case": "HTTP", "name": subject.name, "base": "floor"},
            lambda subject=subject: first_reply.over_http(subject),
        )
        for subject in chosen
    ]
    stdio = [
        ({"case": "stdio", "name": name, "base": "python-mcp"}, lambda command=command: first_reply.over_stdio(command))
        for name, command in STDIO.items()
    ]
    cases = [(row, lambda start=start: {"first_reply_s": start()}) for row, start in (*http, *stdio)]
    # The first start fills the file cache.
    for _, start in cases:
        start()
    return figures.in_turn(rounds, cases)


def checks(rows: list[figures.Row]) -> dict[str, Any]:
    """The targets of a Python server over stdio."""
    own = figures.find(rows, "stdio", "mcpace-python")
    if own is None:
        return {}
    [taken, compared] = own["rounds"]["first_reply_s"], figures.ratios(own, rows, "first_reply_s")
    return {
        "cold start of a stdio server in Python, ms": figures.check(figures.median(taken) * 1e3, 120, at_most=True),
        "cold start of a stdio server in Python ÷ the official SDK's": figures.check(
            figures.median(compared), 0.25, at_most=True
        ),
    }
