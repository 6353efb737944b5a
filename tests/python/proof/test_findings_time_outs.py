"""Clients that give up before the answer comes: releases of SDKs at the profile ``limits``, and a client over stdio."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mcpace import Client, _core
from mcpace.lab.adapters import subject as adapter_subject
from mcpace.lab.clients.client_program import ClientProgram
from mcpace.lab.environments import environment as release_environment
from mcpace.lab.environments.environment import Environment
from support.commands import COMMAND
from support.finding_scenes import findings_by_code, patient, start_recorder

LIMIT_S = 60
CALLS = 3

SERVER = """
import asyncio
from mcpace import Context, MCPServer

mcp = MCPServer("slow")

@mcp.tool()
async def work(seconds: float, context: Context) -> str:
    for part in range(10):
        await context.report_progress(part, 10)
        await asyncio.sleep(seconds / 10)
    return "done"

mcp.run("stdio")
"""


def recorded(folder: Path, ages: Sequence[float], *, answer_s: float, is_person: bool = False) -> dict[str, Any]:
    """Findings of calls over stdio that mcpace's client ends at these ages: by its time-out, or as a person cancels."""
    (folder / "server.py").write_text(SERVER)
    file = folder / "recording.jsonl.zst"
    upstream = shlex.join([sys.executable, str(folder / "server.py")])

    async def run() -> None:
        async with Client([*COMMAND, "record", "--upstream", f"stdio:{upstream}", "--out", str(file)]) as client:
            for age in ages:
                arguments = {"seconds": answer_s}
                if is_person:
                    calling = asyncio.ensure_future(client.call_tool("work", arguments))
                    await asyncio.wait([calling], timeout=age)
                    calling.cancel()
                    await asyncio.wait([calling])
                elif age < answer_s:
                    with pytest.raises(TimeoutError):
                        await client.call_tool("work", arguments, read_timeout_seconds=age)
                else:
                    await client.call_tool("work", arguments, read_timeout_seconds=age)

    asyncio.run(run())
    return findings_by_code(_core.Recording.load(str(file)))


@patient
def test_a_stdio_client_that_gives_up_at_one_age_is_timed_out(tmp_path: Path) -> None:
    context = recorded(tmp_path, [1.2] * CALLS, answer_s=5)["client-time-out"]["context"]
    assert (context["calls"], context["tool"]) == (CALLS, "work")
    assert (context["sign"], context["layer"], context["counted_from"]) == ("cancelled", "call", "beginning")
    assert 1.19e9 < context["time_out_ns"] < 1.4e9


@patient
def test_a_person_who_cancels_once_is_not_timed_out(tmp_path: Path) -> None:
    assert not {"client-time-out", "progress-ignored"} & recorded(tmp_path, [1.2], answer_s=5, is_person=True).keys()
    varied = recorded(tmp_path, [1.1, 2.3, 1.6], answer_s=5, is_person=True)
    assert not {"client-time-out", "progress-ignored"} & varied.keys()
    patient_client = recorded(tmp_path, [20, 20, 20], answer_s=1.5)
    assert not {"client-time-out", "progress-ignored"} & patient_client.keys()


def environment_of(release: str) -> tuple[Environment, list[str]]:
    """Environment of a release of an SDK, and the command of its adapter's client program."""
    resolved = adapter_subject.resolve_subject(release)
    environment = release_environment.ensure_environment(resolved.adapter, resolved.version)
    return environment, list(resolved.adapter.client_command(environment))


def findings_of(release: str, limit_s: float, *calls: dict[str, Any], response: str = "sse") -> dict[str, Any]:
    """Findings of a release's calls of the tool ``answer``, each by a time-out of the SDK's own."""
    environment, command = environment_of(release)
    target = _core.Target("limits", response=response)
    times = []
    try:
        with start_recorder(target.url) as record, ClientProgram.start(command, environment=environment) as program:
            connect = {"cmd": "connect", "url": record.recorder.url, "auth": {"kind": "none"}, "timeout_s": LIMIT_S}
            assert program.send_command(connect, LIMIT_S).ok
            for arguments in calls:
                call = {"cmd": "call_tool", "name": "answer", "arguments": arguments, "timeout_s": limit_s}
                call["progress"] = arguments.get("sends") == "progress"
                answer = program.send_command(call, LIMIT_S)
                times.append((answer.start_ns, answer.end_ns, "ok" if answer.ok else "failed"))
            recording = record.finish()
    finally:
        target.stop()
    for begun, ended, outcome in times:
        recording.add_call("call", "answer", begun, ended, outcome)
    return findings_by_code(recording)


RELEASES = pytest.mark.parametrize("release", ["python@1.30.0", "typescript@1.32.2"])


@RELEASES
@pytest.mark.parametrize("how", [{"head": "late"}, {"sends": "comments", "every_ms": 300}])
@pytest.mark.network
@pytest.mark.proof
def test_releases_that_give_up_are_named(release: str, how: dict[str, Any]) -> None:
    found = findings_of(release, 2.0, *[{"after_ms": 6_000, **how}] * CALLS)
    context = found["client-time-out"]["context"]
    assert (context["calls"], context["counted_from"]) == (CALLS, "beginning")
    assert 1.9e9 < context["time_out_ns"] < 2.3e9


@RELEASES
@pytest.mark.network
@pytest.mark.proof
def test_releases_that_wait_long_enough_are_not_named(release: str) -> None:
    found = findings_of(release, 20.0, *[{"after_ms": 3_000, "head": "late"}] * CALLS)
    assert not {"client-time-out", "progress-ignored"} & found.keys()


@pytest.mark.network
@pytest.mark.proof
def test_progress_does_not_keep_typescript_waiting() -> None:
    progress = {"after_ms": 6_000, "sends": "progress", "every_ms": 300}
    found = findings_of("typescript@1.32.2", 2.0, *[progress] * CALLS, *[{"after_ms": 6_000, "head": "late"}] * CALLS)
    context = found["progress-ignored"]["context"]
    assert (context["calls"], context["without_progress"]) == (CALLS, CALLS)
    assert found["progress-ignored"]["confidence"]["level"] == "high"
    assert found["client-time-out"]["context"]["calls"] == 2 * CALLS


# Calls of the TypeScript SDK, whose time-out starts again with each notification of progress.
RESETTING = """
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
const client = new Client({ name: 'patient', version: '1' });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[1])));
const call = { name: 'answer', arguments: { after_ms: 4000, sends: 'progress', every_ms: 300 } };
const options = { timeout: 2000, resetTimeoutOnProgress: true, onprogress: () => {} };
const kinds = [];
for (let at = 0; at < 3; at += 1) kinds.push((await client.callTool(call, undefined, options)).content[0].type);
console.log(JSON.stringify(kinds));
await client.close();
"""


@pytest.mark.network
@pytest.mark.proof
def test_typescript_that_resets_its_time_out_on_progress_waits() -> None:
    environment, _ = environment_of("typescript@1.32.2")
    target = _core.Target("limits", response="sse")
    try:
        with start_recorder(target.url) as record:
            command = ["node", "--input-type=module", "-e", RESETTING, record.recorder.url]
            done = subprocess.run(
                command, cwd=environment.path, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=True
            )
            found = findings_by_code(record.finish())
    finally:
        target.stop()
    assert json.loads(done.stdout) == ["text"] * CALLS
    assert not {"client-time-out", "progress-ignored"} & found.keys()
