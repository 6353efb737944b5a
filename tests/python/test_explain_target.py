"""Experiments on a live target: what is found where something is wrong, and nothing where nothing is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import commands
from mcpace.lab import factor_list
from mcpace.report.run_factors import Factor
from mcpace.report.words_factors import ADVICE, NAMES

SERVER = """
import sys
from mcpace import MCPServer

server = MCPServer("one")
called = open(sys.argv[1], "a", buffering=1)


@server.tool()
def delete_everything() -> str:
    called.write("deleted\\n")
    return "done"


{more}
server.run()
"""
LOOK = """
@server.tool(annotations={"readOnlyHint": True})
def look(name: str) -> str:
    called.write("looked\\n")
    return name
"""


def explained(*words: object, folder: Path) -> dict[str, Any]:
    done = commands.run("explain", *words, "--json", folder=folder)
    assert done.code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["kind"] == "explain"
    return {one["code"]: one for one in told["factors"]}


def test_a_stall_of_acknowledgements_is_named_by_the_experiment_that_ends_it(tmp_path: Path) -> None:
    found = explained("profile:simple", "--fault", "two-writes", "--budget", "12s", folder=tmp_path)
    quick = found["quick-ack"]
    assert (quick["verdict"], quick["cause"]) == ("faster", "delayed-ack"), quick
    assert quick["high"] < 0.5
    # The same replies as JSON are one write.
    assert found["json"]["verdict"] == "faster"


def test_every_factor_is_tried_on_a_healthy_target_and_no_cause_is_named(tmp_path: Path) -> None:
    found = explained("profile:simple", "--budget", "6s", folder=tmp_path)
    tried = {"quick-ack", "connection", "json", "sse", "concurrency", "argument", "listing", "revision"}
    assert tried <= set(found)
    assert all(one["cause"] is None for one in found.values())
    # On a busy machine some may not fit into the time; each says so then.
    assert all(found[code]["slices"] >= 4 or found[code]["reason"] for code in tried), found
    assert found["connection"]["slices"] >= 4


def test_only_what_is_marked_read_only_or_named_is_called(tmp_path: Path) -> None:
    log = tmp_path / "called"
    server = tmp_path / "server.py"
    command = f"stdio:{sys.executable} {server} {log}"
    server.write_text(SERVER.format(more=""))
    refused = commands.run("explain", command, folder=tmp_path)
    assert refused.code == 2
    assert "marked read-only" in refused.sentence()
    assert not log.exists() or log.read_text() == ""
    server.write_text(SERVER.format(more=LOOK))
    found = explained(command, "--budget", "4s", folder=tmp_path)
    assert set(log.read_text().split()) == {"looked"}
    assert {"argument", "listing", "revision"} <= set(found)
    # What is HTTP's is not tried on a process.
    assert not {"quick-ack", "connection", "json", "concurrency", "standalone-get"} & set(found)


def test_an_address_of_each_family_is_tried_where_a_name_has_both(monkeypatch: pytest.MonkeyPatch) -> None:
    def both(*_: object, **__: object) -> list[Any]:
        return [(10, 1, 6, "", ("::1", 80, 0, 0)), (2, 1, 6, "", ("127.0.0.1", 80))]

    monkeypatch.setattr(factor_list.socket, "getaddrinfo", both)
    assert factor_list.other_addresses("http://localhost:80/mcp") == ["::1", "127.0.0.1"]
    assert factor_list.other_addresses("https://localhost/mcp") == []
    assert factor_list.other_addresses("http://127.0.0.1/mcp") == []
    monkeypatch.setattr(factor_list.socket, "getaddrinfo", lambda *_, **__: both()[:1])
    assert factor_list.other_addresses("http://localhost/mcp") == []


def test_a_small_gain_is_no_delayed_acknowledgement() -> None:
    def gained(base_s: float, changed_s: float) -> str | None:
        ratio = changed_s / base_s
        return factor_list.cause(
            Factor(code="quick-ack", base_s=base_s, changed_s=changed_s, ratio=ratio, verdict="faster")
        )

    assert gained(0.042, 0.001) == "delayed-ack"
    assert gained(0.010, 0.001) is None


def test_every_factor_has_words() -> None:
    assert {code for code, _ in ADVICE} <= set(NAMES)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["http://127.0.0.1:1/mcp"], 3, "127.0.0.1:1"),
        (["profile:simple", "--tool", "nonesuch"], 2, "nonesuch"),
        (["profile:simple", "--budget", "0s"], 2, "limit"),
        (["profile:simple", "--revision", "1999-01-01"], 2, "no revision"),
    ],
)
def test_what_can_not_be_done_is_said(words: list[str], code: int, sentence: str, tmp_path: Path) -> None:
    done = commands.run("explain", *words, folder=tmp_path)
    assert done.code == code
    assert sentence in done.stderr
