"""Programs of Node.js that run already are sampled and left as they were."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from pathlib import Path

import pytest

from mcpace import _core
from mcpace.lab.errors import UsageProblem
from mcpace.lab.inside.running_process import RunningProcess
from mcpace.lab.processes.listening_sockets import listening_addresses

NODE = shutil.which("node")
SERVER = Path(__file__).parent.parent / "support" / "plain_server.mjs"
CALL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "burn"}}).encode()


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_a_program_of_node_is_sampled_and_its_inspector_closed() -> None:
    pytest.importorskip("websockets")
    words = [str(NODE), "--inspect-port=0", str(SERVER)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
        try:
            assert program.stdout is not None
            url = f"http://127.0.0.1:{int(program.stdout.readline())}/mcp"
            before = listening_addresses([program.pid])
            running = RunningProcess(program.pid, url, print)
            assert listening_addresses([program.pid]) != before
            urllib.request.urlopen(url, CALL).close()
            running.close()
            assert listening_addresses([program.pid]) == before
            urllib.request.urlopen(url, CALL).close()
        finally:
            program.kill()
    recording = _core.SpanReceiver().stop()
    running.add_to(recording)
    seen = [event["event"]["stack-seen"] for event in recording.events() if "stack-seen" in event["event"]]
    assert "burn" in {frame["function"] for stack in seen for frame in stack["frames"]}


def test_a_program_named_node_without_a_handler_gets_no_signal(tmp_path: Path) -> None:
    other = shutil.copy(str(shutil.which("sleep")), tmp_path / "node")
    with subprocess.Popen([other, "60"]) as program:
        try:
            with pytest.raises(UsageProblem, match="can't open its inspector"):
                RunningProcess(program.pid, "http://127.0.0.1:9/mcp", print)
            assert program.poll() is None
        finally:
            program.kill()
