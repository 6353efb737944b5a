"""Experiments on a live target: findings where something is wrong, and none where nothing is."""

from __future__ import annotations

import http.server
import json
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mcpace.lab.explain import factors, factors_catalogue
from mcpace.lab.load.check import Checked
from mcpace.lab.load.plan import Closed, HttpTarget, LoadPlan, Operation, StdioTarget
from mcpace.lab.machine import new_run
from mcpace.lab.progress import Silent as SilentProgress
from mcpace.report.model.factors import Factor
from mcpace.report.model.run import Case
from mcpace.report.words.factors import (
    ADVICE,
    NAMES,
    advice_words,
    effect_words,
    left_out,
    ratio_words,
    reason_words,
    sentences,
)
from support import commands

CASE = {"subject": {"sdk": "mcpace-load"}, "target": "u", "operation": "call", "tool": "t"}

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
def look(name: str = "") -> str:
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
    # A JSON reply is one write.
    assert found["json"]["verdict"] == "faster"


def test_every_factor_is_tried_on_a_healthy_target_and_no_cause_is_named(tmp_path: Path) -> None:
    # A busy machine needs more time.
    for budget in ("6s", "12s", "24s"):
        found = explained("profile:simple", "--budget", budget, folder=tmp_path)
        if found["connection"]["slices"] >= 4:
            break
    tried = {"quick-ack", "connection", "json", "sse", "concurrency", "argument", "listing", "revision"}
    assert tried <= set(found)
    assert all(one["cause"] is None for one in found.values())
    # Some may not fit into the time; each says so then.
    assert all(found[code]["slices"] >= 4 or found[code]["verdict"] == "left-out" for code in tried), found
    assert found["connection"]["slices"] >= 4
    assert found["connection"]["confidence"] == 0.99


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
    found = explained(command, "--budget", "15s", folder=tmp_path)
    assert set(log.read_text().split()) == {"looked"}
    assert {"argument", "listing", "revision"} <= set(found)
    # Factors of HTTP are not tried on a process.
    assert not {"quick-ack", "connection", "json", "concurrency", "standalone-get"} & set(found)


def test_an_address_of_each_family_is_tried_where_a_name_has_both(monkeypatch: pytest.MonkeyPatch) -> None:
    def both(*_: object, **__: object) -> list[Any]:
        return [(10, 1, 6, "", ("::1", 80, 0, 0)), (2, 1, 6, "", ("127.0.0.1", 80))]

    monkeypatch.setattr(factors_catalogue.socket, "getaddrinfo", both)
    assert factors_catalogue.other_addresses("http://localhost:80/mcp") == ["::1", "127.0.0.1"]
    assert factors_catalogue.other_addresses("https://localhost/mcp") == []
    assert factors_catalogue.other_addresses("http://127.0.0.1/mcp") == []
    monkeypatch.setattr(factors_catalogue.socket, "getaddrinfo", lambda *_, **__: both()[:1])
    assert factors_catalogue.other_addresses("http://localhost/mcp") == []


def test_a_small_gain_is_no_delayed_acknowledgement() -> None:
    def gained(base_s: float, changed_s: float) -> str | None:
        ratio = changed_s / base_s
        return factors_catalogue.proven_finding(
            Factor(code="quick-ack", base_s=base_s, changed_s=changed_s, ratio=ratio, verdict="faster")
        )

    assert gained(0.042, 0.001) == "delayed-ack"
    assert gained(0.010, 0.001) is None


def test_no_cause_is_named_for_what_merely_costs() -> None:
    def cause(code: str, base_s: float, changed_s: float) -> str | None:
        verdict = "faster" if changed_s < base_s else "slower"
        ratio = changed_s / base_s
        return factors_catalogue.proven_finding(
            Factor(code=code, base_s=base_s, changed_s=changed_s, ratio=ratio, verdict=verdict)  # type: ignore[arg-type]
        )

    # Sessions cost on every server that has them.
    assert cause("session-per-call", 0.001, 0.003) is None
    assert cause("no-session", 0.003, 0.001) is None
    # 5 % of 0.3 ms is no address that was tried in vain.
    assert cause("address", 0.00030, 0.00028) is None
    assert cause("address", 0.025, 0.001) == "address-fallback"


MARKED = {"type": "object", "properties": {"to": {"type": "string"}, "text": {"type": "string"}}}


@pytest.mark.parametrize(
    ("marked", "given", "changed"),
    [(True, {}, "to"), (True, {"to": "me"}, "text"), (True, {"to": "me", "text": "x"}, None), (False, {}, None)],
)
def test_what_the_user_gave_is_never_overwritten(marked: bool, given: dict[str, str], changed: str | None) -> None:
    """A tool that isn't marked read-only gets only the user's arguments, too."""
    tool = {"name": "note", "inputSchema": MARKED, "annotations": {"readOnlyHint": marked}}
    operation = Operation(name="note", kind="call", tool="note", arguments=given)
    base = LoadPlan(
        target=StdioTarget(["server"]), revision="2025-06-18", model=Closed(vus=1), duration_s=1.0, warm_up_s=0.0,
        operations=[operation], timeout_s=1.0,
    )  # fmt: skip
    checked = Checked("2025-06-18", [operation], tools={"note": tool})
    caller = cast(factors_catalogue.Caller, SimpleNamespace(has_automatic_consent=False, is_profile=False))
    found = [
        one
        for one in factors_catalogue.applicable_variants(base, checked, caller, frozenset(given))
        if one.code == "argument"
    ]
    assert [one.detail for one in found] == ([f"64 KiB in {changed}"] if changed else [])
    for one in found:
        assert one.plan is not None
        assert given.items() <= (one.plan.operations[0].arguments or {}).items()


def test_a_named_tool_is_given_what_the_user_gave_and_nothing_else(tmp_path: Path) -> None:
    log, server = tmp_path / "called", tmp_path / "server.py"
    server.write_text(SERVER.format(more=LOOK.replace("looked", "{name}").replace('("{name}', '(f"{name}')))
    command = f"stdio:{sys.executable} {server} {log}"
    commands.run("explain", command, "--tool", "look", "--args", '{"name": "me"}', "--budget", "3s", folder=tmp_path)
    assert set(log.read_text().split()) == {"me"}


class Silent(http.server.BaseHTTPRequestHandler):
    """An MCP server that never answers requests that accept only JSON."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None: ...

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in asked:
            return self.answer(202, b"")
        if "event-stream" not in self.headers.get("accept", ""):
            self.rfile.read(1)  # Until the client is gone.
            self.close_connection = True
            return None
        tool = {"name": "t", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
        result = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "silent", "version": "1"},
            },
            "tools/list": {"tools": [tool]},
            "tools/call": {"content": [{"type": "text", "text": "ok"}]},
        }.get(asked["method"], {})
        return self.answer(200, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode())

    def do_GET(self) -> None:
        self.answer(405, b"")

    def do_DELETE(self) -> None:
        self.answer(200, b"")

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_what_hangs_takes_no_more_than_its_share_of_the_budget(tmp_path: Path) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        found = explained(url, "--budget", "12s", folder=tmp_path)
    finally:
        server.shutdown()
        server.server_close()
    assert found["json"]["verdict"] == "refused"
    assert "within 2 s" in found["json"]["reason"], found["json"]
    # The other factors are measured. On a busy machine, one that cannot matter or does not fit is left out.
    for code in ("quick-ack", "sse"):
        assert found[code]["slices"] >= 4 or found[code]["verdict"] == "left-out", found
    assert max(one["slices"] for one in found.values()) >= 4, found


def drifting(monkeypatch: pytest.MonkeyPatch, by: float) -> list[Factor]:
    """Returns the factors of twelve variants that change nothing, at a target that slows down with each slice."""
    taken = 0

    def slice_(plan: LoadPlan, length_s: float, tried: object = None) -> tuple[float, Any]:
        nonlocal taken
        taken += 1
        return 0.001 * by**taken, None

    monkeypatch.setattr(factors, "_run_slice", slice_)
    plan = cast(LoadPlan, SimpleNamespace())
    tried = [factors._Experiment(factors_catalogue.Variant(str(number), plan=plan)) for number in range(12)]
    left = cast(factors._Budget, SimpleNamespace(left_s=60.0, with_time_limit=lambda plan: plan))
    base = factors._Base(plan)
    for number in range(factors.MOST_PAIRS):
        taken = 0
        factors._run_round(base, tried, 0.1, number, left, SilentProgress(), "t")
    return [factors._measured_factor(one) for one in tried]


def test_a_drift_of_the_target_is_no_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    found = drifting(monkeypatch, 1.01)
    assert all(one.slices in factors.LOOKS for one in found)
    assert [one.code for one in found if one.verdict in ("slower", "faster")] == []


def test_what_is_past_the_budget_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(factors, "_run_slice", lambda plan, length_s, tried=None: asked.append(tried))
    plan = cast(LoadPlan, SimpleNamespace())
    tried = [factors._Experiment(factors_catalogue.Variant(str(number), plan=plan)) for number in range(3)]
    left = cast(factors._Budget, SimpleNamespace(left_s=-1.0, with_time_limit=lambda plan: plan))
    factors._run_round(factors._Base(plan), tried, 0.1, 0, left, SilentProgress(), "t")
    assert asked == []
    assert [factors._measured_factor(one).verdict for one in tried] == ["left-out"] * 3
    run = new_run("explain", {})
    run.factors = [factors._measured_factor(one) for one in tried]
    [sentence] = left_out(run)
    assert sentence.startswith(
        "Skipped, because one round takes longer than the budget allows (give a longer --budget): "
    )


def test_a_call_may_take_what_is_left_and_no_more() -> None:
    plan = LoadPlan(
        target=StdioTarget(["server"]), revision="2025-06-18", model=Closed(vus=1), duration_s=1.0, warm_up_s=0.0,
        operations=[], timeout_s=60.0,
    )  # fmt: skip
    assert factors._Budget(1000.0, 8.0).with_time_limit(plan).timeout_s == 8.0
    assert 9.0 < factors._Budget(10.0, 60.0).with_time_limit(plan).drain_s <= 10.0
    assert factors._Budget(-5.0, 60.0).with_time_limit(plan).timeout_s == factors.HANGS_S


def test_what_a_call_takes_is_the_load_engines_word() -> None:
    """The other client's base case, and connecting, take other times."""
    latency = dict.fromkeys(("mean", "min", "p50", "p90", "p99", "p999", "max"), 0.002) | {"count": 9}
    made = new_run("explain", {})
    made.cases = [Case.model_validate({**CASE, "latency_s": latency})]
    seen = {"base_s": 0.9, "changed_s": 0.9, "ratio": 1.0, "low": 0.99, "high": 1.01, "verdict": "same"}
    made.factors = [Factor.model_validate({"code": code, **seen}) for code in ("standalone-get", "oauth")]
    assert sentences(made) == [
        "A call to t takes 2.00\N{NO-BREAK SPACE}ms.",
        "Nothing changed the time (2 experiments).",
    ]
    made.factors = [Factor(code="json", verdict="unclear")]
    assert sentences(made)[1] == "Too few rounds to compare anything."


def test_every_factor_has_words() -> None:
    assert {code for code, _ in ADVICE} <= set(NAMES)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["http://127.0.0.1:1/mcp"], 3, "127.0.0.1:1"),
        (["profile:simple", "--tool", "nonesuch"], 2, "nonesuch"),
        (["profile:simple", "--budget", "0s"], 2, "limit"),
        (["gone.jsonl.zst"], 2, "gone.jsonl.zst"),
        (["profile:simple", "--revision", "1999-01-01"], 2, "no revision"),
    ],
)
def test_what_can_not_be_done_is_said(words: list[str], code: int, sentence: str, tmp_path: Path) -> None:
    done = commands.run("explain", *words, folder=tmp_path)
    assert done.code == code
    assert sentence in done.stderr


def test_a_long_command_is_no_file_name(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(SERVER.format(more=LOOK))
    command = f"stdio:{sys.executable} {server} {tmp_path / 'called'} {'x' * 400} {'y/' * 4000}"
    done = commands.run("explain", command, "--tool", "nonesuch", folder=tmp_path)
    assert done.code == 2
    assert "nonesuch" in done.sentence()
    done = commands.run("explain", "z" * 5000, folder=tmp_path)
    assert done.code == 2


def test_an_address_is_tried_by_connecting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls over an existing connection don't show failed attempts to connect."""
    monkeypatch.setattr(factors_catalogue, "other_addresses", lambda _: ["::1", "127.0.0.1"])
    asked: list[str | None] = []

    def connect_client(*, address: str | None = None, **_: object) -> Any:
        asked.append(address)
        return SimpleNamespace(disconnect=lambda: None)

    caller = cast(
        factors_catalogue.Caller,
        SimpleNamespace(has_automatic_consent=False, is_profile=False, connect_client=connect_client),
    )
    base = LoadPlan(
        target=HttpTarget("http://localhost:8000/mcp"), revision="2026-07-28", model=Closed(vus=1), duration_s=1.0,
        warm_up_s=0.0, operations=[Operation(name="t", kind="call", tool="t")], timeout_s=1.0, session="none",
    )  # fmt: skip
    found = [
        one
        for one in factors_catalogue.applicable_variants(base, Checked("2026-07-28", []), caller)
        if one.code == "address"
    ]
    assert [one.detail for one in found] == ["::1", "127.0.0.1"]
    for one in found:
        assert one.plan is None and one.measure is not None and one.base is not None
        one.base(0.0)
        one.measure(0.0)
    assert asked == [None, "http://[::1]:8000/mcp", None, "http://127.0.0.1:8000/mcp"]


def factor(code: str, ratio: float, detail: str = "", **more: Any) -> Factor:
    verdict = "slower" if ratio > 1 else "faster"
    seen = {"base_s": 1.0, "changed_s": ratio, "ratio": ratio, "low": ratio * 0.9, "high": ratio * 1.1}
    return Factor.model_validate({"code": code, "detail": detail, "verdict": verdict, **seen, **more})


def test_what_is_faster_is_told_as_faster() -> None:
    quick = factor("quick-ack", 1 / 316)
    assert effect_words(quick) == ratio_words(quick) == "316× faster (287–351)"
    slow = factor("listing", 3.1)
    assert (effect_words(slow), ratio_words(slow)) == ("3.1× the time (2.8–3.4)", "3.1× (2.8–3.4)")


def test_advice_fits_the_figure() -> None:
    serial, shared = factor("concurrency", 9.6, "10 at once"), factor("concurrency", 4.2, "10 at once")
    assert "run one after another" in advice_words(serial)
    assert advice_words(shared) == "10 calls at once are answered at 2.4× the rate of one after another."
    newer, older = factor("revision", 0.8, "2026-07-28"), factor("revision", 0.8, "2025-06-18")
    assert advice_words(newer) == "Update the side that does not speak 2026-07-28 yet."
    assert advice_words(older).startswith("The newer revision is the slower one here")
    assert advice_words(factor("revision", 1.3, "2026-07-28")) == ""


def test_a_refusal_has_its_reason() -> None:
    refused = factor("json", 1.0, verdict="refused", reason="HTTP 406: not acceptable")
    assert reason_words(refused) == "refused by the server (406): not acceptable"
    failed = factor("listing", 1.0, verdict="refused", reason="every call failed")
    assert reason_words(failed) == "skipped: every call failed"


def test_arguments_of_a_read_only_tool_are_made_from_its_schema(tmp_path: Path) -> None:
    log, server = tmp_path / "called", tmp_path / "server.py"
    look = LOOK.replace('name: str = ""', "name: str").replace('"looked\\n"', 'f"{len(name)}\\n"')
    server.write_text(SERVER.format(more=look))
    explained(f"stdio:{sys.executable} {server} {log}", "--budget", "6s", folder=tmp_path)
    # The other length is that of the large argument, which is a factor.
    assert str(len("mcpace")) in log.read_text().split()
    assert "deleted" not in log.read_text()
