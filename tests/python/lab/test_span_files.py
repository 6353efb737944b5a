"""Files of spans, alone and with a recording: those that OpenTelemetry writes, and those that Jaeger downloads."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mcpace.lab.errors import UsageProblem
from mcpace.lab.explain import recording_run
from mcpace.lab.paths import find_uv
from mcpace.report.model.recording import SpanFacts
from mcpace.report.model.run import Case, Run
from mcpace.report.terminal.print_run import print_run
from support import commands

PRODUCER = Path(__file__).parents[1] / "support" / "span_producer.py"
PACKAGES = (
    "fastmcp==4.1.6",
    "httpx==0.28.1",
    "opentelemetry-exporter-otlp-json-file==0.66b1",
    "opentelemetry-instrumentation-httpx==0.66b1",
)
INSTALL_LIMIT_S = 300

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


@pytest.fixture(scope="module")
def produced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Spans of FastMCP and httpx, from calls in a row and from calls at once."""
    folder = tmp_path_factory.mktemp("spans")
    with_packages = [word for package in PACKAGES for word in ("--with", package)]
    for at_once in (1, 3):
        command = [str(find_uv()), "run", "--no-project", "--quiet", *with_packages, "python", str(PRODUCER)]
        done = subprocess.run(
            [*command, str(folder / f"{at_once}.jsonl"), str(at_once)],
            capture_output=True,
            text=True,
            timeout=INSTALL_LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
    yield folder


def only_case(run: Run) -> Case:
    [case] = run.cases
    return case


def run_text(run: Run, width: int) -> str:
    output = io.StringIO()
    print_run(run, Console(file=output, width=width))
    return " ".join(output.getvalue().replace("\u00a0", " ").split())


def facts_of(run: Run) -> SpanFacts:
    assert run.recording is not None
    assert run.recording.spans is not None
    return run.recording.spans


@pytest.mark.parametrize("at_once", [1, 3])
def test_spans_of_fastmcp_and_httpx_become_calls_with_a_ledger(produced: Path, at_once: int) -> None:
    file = produced / f"{at_once}.jsonl"
    run = recording_run.explain_spans(file)
    case = only_case(run)
    inside = case.inside
    assert inside is not None
    assert (case.tool, inside.calls, inside.overlapping) == ("forecast", 6, 0)
    assert inside.traced == (0 if at_once == 1 else 6)
    [dependency] = inside.dependencies
    assert dependency.requests == 3
    assert inside.server_s >= 0.06
    assert abs(dependency.time_s + inside.rest_s - inside.server_s) < 1e-6
    assert dependency.time_s >= 0.06
    assert "serial-dependencies" in [finding.code for finding in case.findings]
    facts = facts_of(run)
    assert (facts.traced, facts.timed, facts.duplicates, facts.misplaced) == (18, 0, 0, 0)
    assert "PLANTED" in file.read_text()
    assert "PLANTED" not in run.model_dump_json()


def test_a_cut_and_compressed_file_is_read_as_far_as_it_goes(produced: Path, tmp_path: Path) -> None:
    text = (produced / "1.jsonl").read_bytes()
    file = tmp_path / "spans.jsonl.gz"
    file.write_bytes(gzip.compress(text[: len(text) - 300]))
    facts = facts_of(recording_run.explain_spans(file))
    assert facts.cut_off
    assert 0 < facts.spans < text.count(b'"spanId"')


def jaeger(*, hours_ahead: float = 0, calls: int = 4) -> dict[str, Any]:
    """Traces as Jaeger's API answers with them: a server's calls that ask a database eight times each."""
    traces = []
    for number in range(calls):
        trace = f"{number + 1:x}"
        start = START // 1000 + number * 1_000_000 + int(hours_ahead * 3_600e6)
        parent = {"traceID": trace, "spanID": "a1", "operationName": "tools/call orders", "references": [],
                  "startTime": start, "duration": 100_000, "processID": "p1", "logs": [], "warnings": None,
                  "tags": [{"key": "span.kind", "type": "string", "value": "server"},
                           {"key": "mcp.method.name", "type": "string", "value": "tools/call"},
                           {"key": "gen_ai.tool.name", "type": "string", "value": "orders"}]}  # fmt: skip
        queries = [
            {"traceID": trace, "spanID": f"b{query}", "operationName": "SELECT", "processID": "p1", "logs": [],
             "references": [{"refType": "CHILD_OF", "traceID": trace, "spanID": "a1"}],
             "startTime": start + 1000 + query * 12_000, "duration": 10_000,
             "tags": [{"key": "span.kind", "type": "string", "value": "client"},
                      {"key": "db.system", "type": "string", "value": "postgresql"},
                      {"key": "db.statement", "type": "string",
                       "value": f"SELECT * FROM orders WHERE customer = {query} AND token = 'PLANTED'"}]}
            for query in range(8)
        ]  # fmt: skip
        traces.append({"traceID": trace, "spans": [parent, *queries], "processes": {"p1": {"serviceName": "shop"}}})
    return {"data": traces, "total": 0, "limit": 0, "offset": 0, "errors": None}


def test_traces_of_jaeger_show_repeated_statements_without_their_literals(tmp_path: Path) -> None:
    file = tmp_path / "traces.json"
    file.write_text(json.dumps(jaeger(), indent=2))
    run = recording_run.explain_spans(file)
    [finding] = only_case(run).findings
    assert finding.code == "repeated-dependency-call"
    text = run_text(run, 100)
    assert "postgresql" in text
    assert "36 spans, 32 of them requests that programs made: 32 belong to a call by their trace." in text
    assert "PLANTED" not in run.model_dump_json()


def recorded(folder: Path, calls: int = 4) -> Path:
    """A recording of the calls of :func:`jaeger` by a client, whose requests began the traces."""
    head = {"format": "mcpace.recording/2", "instrument": "client", "started": "2023-11-14T22:13:20Z", "started_ns": 0,
            "mcpace": "0.1.0", "upstream": "http://127.0.0.1/mcp"}  # fmt: skip
    lines: list[Any] = [head]
    for number in range(calls):
        at = number * SECOND
        note = {"kind": "request", "id": str(number), "method": "tools/call", "name": "orders"}
        answer = {"kind": "result", "id": str(number)}
        request = {"side": "back", "ex": number, "bytes": 1, "digest": "0" * 16}
        traceparent = f"00-{number + 1:032x}-{0xC1:016x}-01"
        lines += [
            {"at": at, "event": {"call-start": {"call": number, "operation": "call", "tool": "orders"}}},
            {"at": at, "event": {"request-head": {"side": "back", "conn": 1, "ex": number, "method": "POST",
                                                  "target": "/mcp", "headers": [["traceparent", traceparent]]}}},
            {"at": at, "event": {"request-end": {**request, "messages": [note]}}},
            {"at": at + SECOND // 10, "event": {"reply-head": {"side": "back", "ex": number, "status": 200}}},
            {"at": at + SECOND // 10, "event": {"reply-body-start": {"side": "back", "ex": number}}},
            {"at": at + SECOND // 10, "event": {"reply-end": {**request, "ending": "complete", "messages": [answer]}}},
            {"at": at + SECOND // 10, "event": {"call-end": {"call": number, "outcome": "ok"}}},
        ]  # fmt: skip
    file = folder / "calls.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@pytest.mark.parametrize("hours_ahead", [0, -5])
def test_spans_are_joined_to_recorded_calls_whatever_the_clock_of_their_machine(
    tmp_path: Path, hours_ahead: float
) -> None:
    traces = jaeger(hours_ahead=hours_ahead)
    for trace in traces["data"]:
        trace["spans"][0]["references"] = [{"refType": "CHILD_OF", "traceID": trace["traceID"], "spanID": "c1"}]
    spans = tmp_path / "traces.json"
    spans.write_text(json.dumps(traces))
    run = recording_run.explain_recording(recorded(tmp_path), spans=spans)
    case = only_case(run)
    assert case.inside is not None
    assert (case.inside.calls, case.inside.spans, case.inside.traced_spans) == (4, 32, 32)
    assert [finding.code for finding in case.findings] == ["repeated-dependency-call"]
    [clock] = facts_of(run).clocks
    assert abs(clock.shift_s + hours_ahead * 3600) < 0.001
    text = run_text(run, 200)
    if hours_ahead:
        assert "The clock of shop differs from that of the recording: its times were shifted by +18,000 s" in text
    else:
        assert "The times of shop fit the recorded calls and can be wrong by at most" in text


def test_spans_without_a_trace_to_the_calls_are_joined_by_time(tmp_path: Path) -> None:
    spans = tmp_path / "traces.json"
    traces = jaeger()
    for trace in traces["data"]:
        trace["spans"][0]["references"] = [{"refType": "CHILD_OF", "traceID": trace["traceID"], "spanID": "ff"}]
    spans.write_text(json.dumps(traces))
    run = recording_run.explain_recording(recorded(tmp_path), spans=spans)
    facts = facts_of(run)
    # The span between the request and the server's was not reported, and each trace has one request.
    assert facts.traced == 32
    text = json.dumps(jaeger()).replace('"traceID": "', '"traceID": "abc')
    spans.write_text(text)
    run = recording_run.explain_recording(recorded(tmp_path), spans=spans)
    facts = facts_of(run)
    assert (facts.traced, facts.timed) == (0, 32)
    assert "placed by the wall clock" in run_text(run, 200)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a file of spans"),
        ("hello", "is not a file of spans: expected value at line 1 column 1"),
        ('{"resourceMetrics": []}', 'neither the "resourceSpans" of OTLP nor the "data" of Jaeger'),
        ('{"resourceSpans": []}', "is a file of spans that holds none"),
        ('{"data": [{"spans": [{"startTime": 5, "duration": 1}]}]}', "1 of them, and none is a call of an MCP server"),
    ],
)
def test_a_file_of_something_else_gets_one_sentence(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "file.json"
    file.write_text(text)
    with pytest.raises(UsageProblem, match=r"file\.json") as raised:
        recording_run.explain_spans(file)
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


def test_spans_that_never_end_or_contradict_each_other_are_told(tmp_path: Path) -> None:
    span = {"traceId": "0" * 31 + "1", "name": "GET", "kind": 3, "startTimeUnixNano": str(START)}
    spans = [
        {**span, "spanId": "0" * 15 + "1", "name": "tools/call orders", "kind": 2,
         "endTimeUnixNano": str(START + SECOND)},
        {**span, "spanId": "0" * 15 + "2", "endTimeUnixNano": "0"},
        {**span, "spanId": "0" * 15 + "3", "endTimeUnixNano": str(START - 5)},
        {**span, "spanId": "0" * 15 + "4", "parentSpanId": "0" * 15 + "1", "startTimeUnixNano": str(START - SECOND),
         "endTimeUnixNano": str(START)},
        {**span, "spanId": "0" * 15 + "4", "parentSpanId": "0" * 15 + "1", "endTimeUnixNano": str(START + 5)},
    ]  # fmt: skip
    file = tmp_path / "spans.json"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    text = run_text(recording_run.explain_spans(file), 300)
    for told in (
        "1 span has no end and is left out.",
        "1 span ends before it begins and is left out.",
        "1 span is in the file twice and counts once.",
        "1 span begins outside the span that began it; its own times count.",
    ):
        assert told in text


def test_the_command_explains_a_file_of_spans_alone_and_refuses_it_with_a_live_target(tmp_path: Path) -> None:
    file = tmp_path / "traces.json"
    file.write_text(json.dumps(jaeger()))
    done = commands.run("explain", "--spans", file, folder=tmp_path)
    assert done.code == 0, done.stderr
    assert "Inside orders" in done.stdout
    done = commands.run("explain", "http://127.0.0.1:1/mcp", "--spans", file, folder=tmp_path)
    assert (done.code, "--spans belongs to a saved recording" in done.stderr) == (2, True)
    done = commands.run("explain", folder=tmp_path)
    assert (done.code, "name a target" in done.stderr) == (2, True)
