"""``mcpace gateway``: added time, load, and what a gateway changes, with real processes in front of a real server."""

from __future__ import annotations

import json
import random
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpace.lab.errors import UsageProblem
from mcpace.lab.gateway.plan import GatewayPlan, with_direct
from mcpace.lab.gateway.traffic import Traffic, reply_changes, request_changes
from mcpace.lab.machine import new_run
from mcpace.lab.statistics.paired_difference import mean_difference, quantile, quantile_difference
from mcpace.lab.targets import parse_target
from mcpace.report import tables
from mcpace.report.model.gateway import AddedQuantile, GatewayChange, GatewayFacts
from mcpace.report.model.run import Run
from mcpace.report.verdict import verdict
from support.commands import COMMAND, Ended, closed_port, run

BUFFERING = Path(__file__).parents[1] / "support" / "buffering_gateway.py"
QUICK = ("--trials", "2", "--calls", "3", "--duration", "0s", "--json")


def measured(through: str, folder: Path, *words: str) -> tuple[Ended, dict[str, Any]]:
    ended = run("gateway", "--direct", "profile:simple", "--through", through, *QUICK, *words, folder=folder)
    return ended, json.loads(ended.stdout) if ended.stdout else {}


def changes(found: dict[str, Any]) -> dict[tuple[str, str], tuple[str, str]]:
    return {(one["code"], one["name"]): (one["direct"], one["through"]) for one in found["gateway"]["changes"]}


def test_a_gateway_that_holds_replies_back_is_found(tmp_path: Path) -> None:
    gateway = f"serve:{sys.executable} {BUFFERING} {{direct}}"
    ended, found = measured(gateway, tmp_path, "--duration", "1.2s", "--vus", "2")
    assert ended.code == 0, ended.stderr
    told = changes(found)
    assert told["request-header", "x-mcpace-probe"] == ("passed", "")
    assert ("request-header", "traceparent") not in told
    assert told["reply-header", "via"] == ("", "1.1 buffering")
    assert told["reply-header", "cache-control"][1] == ""
    assert ("stream-held-back", "") in told and ("stream-lost", "") not in told
    requests = int(told["connections", ""][1].split()[0])
    assert requests > int(told["connections", ""][0].split()[0])
    facts = found["gateway"]
    assert (facts["not_observed"], facts["stream_not_tried"]) == ("", "")
    assert facts["inside"]["requests"] == 1 and 0 < facts["inside"]["server_s"] < facts["inside"]["call_s"]
    assert facts["load"]["turns"] == 6 and facts["load"]["direct_rps"] > facts["load"]["through_rps"] > 0
    assert {"p50"} == {one["percentile"] for one in facts["quantiles"] if one["operation"] == "call"}
    run_of = Run.from_json(json.dumps(found))
    added = sum(one.through_s - one.direct_s for one in facts_of(run_of).parts)
    assert added > 0
    assert "holds progress back" in verdict(run_of)


def test_a_gateway_that_passes_everything_on_changes_nothing(tmp_path: Path) -> None:
    ended, found = measured(f"serve:{COMMAND[0]} record --quiet --upstream {{direct}} --out {tmp_path}/r.zst", tmp_path)
    assert ended.code == 0, ended.stderr
    assert changes(found) == {}
    assert found["gateway"]["inside"]["requests"] == 1


def test_a_gateway_that_runs_already_is_compared_from_the_client_alone(tmp_path: Path) -> None:
    ended, _ = measured("profile:simple", tmp_path)
    assert ended.code == 2 and "--direct" in ended.sentence()
    port = closed_port()
    ended, _ = measured(f"http://127.0.0.1:{port}/mcp", tmp_path)
    assert ended.code == 3, ended.stderr


def test_a_gateway_over_stdio_that_names_no_server_says_so(tmp_path: Path) -> None:
    target = tmp_path / "other.py"
    target.write_text(
        "from mcpace import MCPServer\nmcp = MCPServer('other')\n\n@mcp.tool()\ndef greet(name: str) -> str:\n"
        "    return name\n\nmcp.run()\n"
    )
    ended, found = measured(f"stdio:{sys.executable} {target}", tmp_path)
    assert ended.code == 0, ended.stderr
    assert "{direct}" in found["gateway"]["not_observed"]
    assert changes(found)["server", ""][1].startswith("other")
    assert any(drift["changes"] for drift in found["comparison"]["drifts"])


def test_the_place_of_the_server_is_filled() -> None:
    gateway = parse_target("serve:proxy --to {direct} --label=x{direct} {direct_host}")
    assert with_direct(gateway, "http://a:1/mcp").program.command == (
        *("proxy", "--to", "http://a:1/mcp"), "--label=xhttp://a:1/mcp", "a:1",
    )  # fmt: skip
    command = ["python", "my server.py"]
    assert with_direct(gateway, command).program.command == (
        *("proxy", "--to", *command), f"--label=x{shlex.join(command)}", "",
    )  # fmt: skip
    assert GatewayPlan(gateway, gateway).has_place
    with pytest.raises(UsageProblem, match="OAuth"):
        GatewayPlan(parse_target("profile:notion"), gateway).check()


def exchange(number: int, connection: int, method: str, headers: dict[str, str], reply: dict[str, str]) -> list[Any]:
    """The events of one exchange."""
    shared = {"side": "back", "ex": number}
    head = shared | {"conn": connection, "method": "POST", "headers": list(headers.items())}
    return [
        {"at": number * 10, "event": {"request-head": head}},
        {"at": number * 10, "event": {"request-end": shared | {"messages": [{"kind": "request", "method": method}]}}},
        {"at": number * 10 + 4, "event": {"reply-head": shared | {"status": 200, "headers": list(reply.items())}}},
        {"at": number * 10 + 5, "event": {"reply-end": shared | {"ending": "complete"}}},
    ]  # fmt: skip


def traffic(*exchanges: list[Any]) -> Traffic:
    return Traffic.of([event for one in exchanges for event in one], "back")


def test_headers_that_vary_by_themselves_are_no_change() -> None:
    direct = traffic(
        exchange(1, 1, "tools/call", {"a": "1"}, {"Date": "x", "serial": "1", "kept": "k", "gone": "g", "other": "o"}),
        exchange(2, 1, "tools/call", {"a": "1"}, {"Date": "y", "serial": "2", "kept": "k", "gone": "g", "other": "o"}),
    )
    through = traffic(
        exchange(1, 1, "tools/call", {}, {"date": "z", "serial": "9", "kept": "k", "other": "p", "new": "n"})
    )
    assert reply_changes(direct, through) == [
        GatewayChange(code="reply-header", name="gone", direct="g"),
        GatewayChange(code="reply-header", name="new", through="n"),
        GatewayChange(code="reply-header", name="other", direct="o", through="p"),
    ]
    assert reply_changes(direct, direct) == []
    assert request_changes(direct, through, 1) == [
        GatewayChange(code="request-header", name="a", direct="1"),
        GatewayChange(code="requests", name="tools/call", direct="2", through="1"),
    ]


def test_sessions_and_connections_are_counted() -> None:
    client = traffic(exchange(1, 1, "initialize", {}, {}), exchange(2, 1, "initialize", {}, {}))
    shared = traffic(exchange(1, 7, "initialize", {}, {"mcp-session-id": "s"}), exchange(2, 8, "tools/list", {}, {}))
    found = request_changes(client, shared, 2)
    assert GatewayChange(code="sessions", direct="2", through="1") in found
    assert GatewayChange(code="connections", direct="1 for 2", through="2 for 2") in found
    assert shared.busy_ns(0, 100) == (10, 2) and shared.busy_ns(12, 18) == (0, 0)
    assert request_changes(client, shared, 2, start_ns=15)[0] == GatewayChange(code="sessions", direct="2", through="1")
    assert reply_changes(client, shared) == [GatewayChange(code="session-added")]
    assert reply_changes(shared, client) == [GatewayChange(code="session-removed")]


def test_intervals_cover_a_known_difference() -> None:
    """Over 60 experiments with a true difference of 1, each 95 % interval misses at most as often as chance allows."""
    source = random.Random(5)
    misses = {"mean": 0, "median": 0}
    for _ in range(60):
        rounds = [source.gauss(0, 1) for _ in range(12)]  # shared by both sides: the machine at that moment
        theirs = [[offset + source.gauss(5, 0.3) for _ in range(8)] for offset in rounds]
        ours = [[offset + source.gauss(6, 0.3) for _ in range(8)] for offset in rounds]
        low, high = mean_difference([sum(y) / 8 - sum(x) / 8 for x, y in zip(theirs, ours, strict=True)]) or (0, 0)
        misses["mean"] += not low <= 1 <= high
        low, high = quantile_difference(ours, theirs, 0.5) or (0, 0)
        misses["median"] += not low <= 1 <= high
    assert misses["mean"] <= 8 and misses["median"] <= 8, misses
    assert quantile_difference([[1.0]] * 4, [[1.0]] * 4, 0.5) is None and mean_difference([1.0]) is None
    assert (quantile([1, 2, 3, 4], 0.5), quantile([1, 2, 3, 4], 0.9), quantile([7], 0.99)) == (2, 4, 7)


def facts_of(found: Run) -> GatewayFacts:
    assert found.gateway is not None
    return found.gateway


def test_the_words_name_only_a_difference_that_was_seen() -> None:
    made = new_run("gateway", {})
    clear = AddedQuantile(
        operation="call", percentile="p50", direct_s=0.001, through_s=0.003, low_s=0.0015, high_s=0.0025,
        direct_count=40, through_count=40,
    )  # fmt: skip
    made.gateway = GatewayFacts(quantiles=[clear], changes=[GatewayChange(code="sessions", direct="3", through="1")])
    assert "adds 2.00\N{NO-BREAK SPACE}ms to a call at the median (1.00\N{NO-BREAK SPACE}ms directly)" in verdict(made)
    assert "3 sessions of the client were 1 at the server" in verdict(made)
    made.gateway.quantiles = [clear.model_copy(update={"low_s": -0.001})]
    assert "adds no time that was seen" in verdict(made)
    (first, last) = tables.tables(Run.from_json(made.to_json()))
    assert first.rows[0][0] == "a call, p50" and last.rows == [("sessions at the server", "3", "1")]
