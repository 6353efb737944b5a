"""Releases as clients that show a cause which no adapter's program does: hosts of agents, and of connects given up."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mcpace import MCPServer, _core
from mcpace.lab.adapters import subject
from mcpace.lab.adapters.toml_file import load_adapter
from mcpace.lab.environments import environment as release_environment
from support.finding_scenes import findings_by_code, start_recorder
from support.python_server import served as serving
from support.release_proofs import interpreter

pytestmark = [pytest.mark.network, pytest.mark.proof]

LIMIT_S = 60


# Three connects by one provider, as a host keeps it. The token runs out after each; the second connect is given up
# while it is renewed.
CONNECTS = """
import asyncio, json, sys, time
from pathlib import Path
sys.path[:0] = [f"{sys.argv[1]}/fastmcp", f"{sys.argv[1]}/shared"]
import consent
import fastmcp

async def main(url):
    provider = consent.Wallet(Path()).prepare(url, {"consent": "follow"}).construct()
    for patience in (30, 1, 9):
        begun, outcome = time.monotonic_ns(), "ok"
        try:
            async with fastmcp.Client(url, auth=provider, init_timeout=patience):
                pass
        except RuntimeError:
            outcome = "failed"
        print(json.dumps([begun, time.monotonic_ns(), outcome]), flush=True)
        while provider.context.is_token_valid():
            await asyncio.sleep(0.05)

asyncio.run(main(sys.argv[2]))
"""


@pytest.mark.parametrize(("release", "hangs"), [("fastmcp@2.14.7", True), ("fastmcp@3.4.11", False)])
def test_fastmcp_2_14_loses_its_lock_where_a_token_is_given_up(release: str, hangs: bool) -> None:
    target = _core.Target("notion", hold_s=0.1, faults=["token-lifetime=1s", "token-endpoint=2s"])
    adapter = subject.resolve_subject(release).adapter
    with start_recorder(target.url) as record:
        command = [interpreter(release), "-c", CONNECTS, str(adapter.folder.parent), record.recorder.url]
        quiet = {**os.environ, "FASTMCP_LOG_LEVEL": "CRITICAL"}
        done = subprocess.run(command, stdout=subprocess.PIPE, env=quiet, text=True, timeout=LIMIT_S, check=True)
        recording = record.finish()
    target.stop()
    connects = [json.loads(line) for line in done.stdout.splitlines()]
    assert [outcome for _, _, outcome in connects] == ["ok", "failed", "failed" if hangs else "ok"]
    for begun, ended, outcome in connects:
        recording.add_call("connect", None, begun, ended, outcome)
    findings = findings_by_code(recording)
    assert ("auth-deadlock" in findings) is hangs, findings


AGENTS = Path(__file__).parents[2] / "proof" / "openai-agents"


def greet(name: str) -> str:
    return f"Hello, {name}!"


@pytest.mark.parametrize(
    ("release", "cache", "repeats"),
    [("0.0.17", "uncached", True), ("0.0.17", "cached", False), ("0.0.16", "uncached", False)],
)
def test_openai_agents_list_the_tools_again_for_each_turn(release: str, cache: str, repeats: bool) -> None:
    """Since 0.0.17; before, for each run, where the model of these has three turns in it."""
    environment = release_environment.ensure_environment(load_adapter(AGENTS), release)
    made: MCPServer[Any] = MCPServer("shop")
    made.tool()(greet)
    with serving(made) as port, start_recorder(f"http://127.0.0.1:{port}/mcp") as record:
        command = load_adapter(AGENTS).client_command(environment)
        subprocess.run([*command, record.recorder.url, cache, "2"], timeout=LIMIT_S, check=True)
        findings = findings_by_code(record.finish())
    assert ("repeated-listing" in findings) is repeats, findings
