"""The log level of a served program: the command line takes precedence over the author's setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.serve_process import modern, serving

SOURCE = """
import logging
{before}
from mcpace import MCPServer

mcp = MCPServer("logs"{options})

@mcp.tool()
def speak() -> str:
    for level in ("debug", "info", "warning", "error"):
        getattr(logging.getLogger("app"), level)("this is %s", level)
    return "spoken"
"""
OWN = "logging.basicConfig(level='WARNING', format='own %(message)s')"


@pytest.mark.parametrize(
    ("before", "options", "words", "said"),
    [
        ("", "", (), "info warning error"),
        ("", ", log_level='ERROR'", (), "error"),
        ("", "", ("--log-level", "debug"), "debug info warning error"),
        ("", "", ("--log-level", "error", "--workers", 2), "error"),
        ("", ", log_level='ERROR'", ("--log-level", "debug"), "debug info warning error"),
        (OWN, "", (), "own warning error"),
        (OWN, "", ("--log-level", "info"), "own info warning error"),
    ],
)
def test_the_command_lines_level_wins(before: str, options: str, words: tuple, said: str, tmp_path: Path) -> None:
    with serving(
        tmp_path, "server.py", "--port", 0, *words, source=SOURCE.format(before=before, options=options)
    ) as one:
        one.ready()
        assert modern(one.port, "speak")["content"][0]["text"] == "spoken"
        one.lines.until("this is error")
        levels = [line.rsplit(" ", 1)[1] for line in one.lines.said if "this is" in line]
        own = any(line.startswith("own this is") for line in one.lines.said)
        assert " ".join((["own"] if own else []) + levels) == said
