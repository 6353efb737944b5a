"""``mcpace target FILE``: a server of the official SDK is recorded, and its recording answers real clients."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpace import MCPError, _core
from mcpace.client import SyncClient
from mcpace.testing import serve_recording
from support import echo_server
from support.commands import COMMAND, LIMIT_S, run
from support.serve_process import hold_process


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording over stdio of a handshake, a list, three calls and an error."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "server.py").write_text(echo_server.SERVER)
    file = folder / "shop.jsonl.zst"
    upstream = f"stdio:{echo_server.interpreter()} {folder / 'server.py'} 0"
    with SyncClient([*COMMAND, "record", "--upstream", upstream, "--out", str(file)]) as client:
        client.list_tools()
        for text in ("tea", "rice", "tea"):
            assert client.call_tool("echo", {"text": text}).content[0].text == text
        assert client.call_tool("fail", {}).is_error
    return file


@contextmanager
def target(folder: Path, *words: object) -> Iterator[tuple[str, Any]]:
    """The URL of a running ``mcpace target``, and its process."""
    command = [*COMMAND, "target", *map(str, words)]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    with hold_process(process) as served:
        yield re.sub(r".* serves at (\S+);.*", r"\1", _line(process)), served


def _line(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    while True:
        line = process.stderr.readline().decode()
        assert line, "the command ended before it served"
        if " serves at " in line:
            return line.strip()


def counters(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Ends the command with Ctrl-C; returns the counters that it prints."""
    os.killpg(process.pid, signal.SIGINT)
    _, rest = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, rest
    told: dict[str, Any] = json.loads(rest[rest.index(b"{") :])
    return told


def test_a_recording_of_stdio_answers_over_http(recording: Path) -> None:
    with target(recording.parent, recording.name, "--time-scale", "0") as (url, served):
        for mode in ("legacy", "auto"):
            with SyncClient(url, mode=mode) as client:
                assert client.server_info.name == "shop"
                assert [tool.name for tool in client.list_tools().tools] == ["echo", "fail"]
                assert client.call_tool("echo", {"text": "rice"}).content[0].text == "rice"
                assert client.call_tool("fail", {}).is_error
                with pytest.raises(MCPError, match="not with these; the nearest has"):
                    client.call_tool("echo", {"text": "milk"})
        told = counters(served.process)
    assert told["matches"]["none"] == 2 and told["tools"] == {"echo": 4, "fail": 2}


def test_it_answers_over_stdio(recording: Path) -> None:
    command = [*COMMAND, "target", str(recording), "--stdio", "--match", "lenient", "--time-scale", "0"]
    with SyncClient(command) as client:
        assert client.call_tool("echo", {"text": "tea"}).content[0].text == "tea"
        assert client.call_tool("echo", {"text": "milk"}).content[0].text == "tea"
        with pytest.raises(MCPError, match=r"no tools/call of \"other\""):
            client.call_tool("other", {})


def test_it_measures_a_client_as_the_server_would(recording: Path, tmp_path: Path) -> None:
    """The instrumented client takes the recorded server for a real one."""
    with target(tmp_path, recording, "--time-scale", "0") as (url, _):
        words = ("measure", url, "--tool", "echo", "--args", '{"text": "tea"}', "--trials", "2", "--json")
        measured = run(*words, folder=tmp_path)
    assert measured.code == 0, measured.stderr
    call = next(case for case in json.loads(measured.stdout)["cases"] if case["operation"] == "call")
    assert len(call["trials_s"]) == 2 and not call["failures"]


def test_files_that_cannot_be_served(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "text.jsonl").write_text("hello")
    (tmp_path / "binary.zst").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "simple").write_text("a file named as a profile")
    os.mkfifo(tmp_path / "pipe.jsonl")
    for words, sentence in (
        (["text.jsonl"], "is not a recording"),
        (["binary.zst"], "is not a recording"),
        (["./simple"], "is not a recording"),
        (["pipe.jsonl"], "is neither a profile"),
        (["absent.jsonl.zst"], "is neither a profile"),
        ([recording, "--match", "exact"], "--match takes strict or lenient"),
        ([recording, "--time-scale", "-1"], "is not a number from 0 to 1000"),
        ([recording, "--time-scale", "nan"], "is not a number from 0 to 1000"),
        ([recording, "--fault", "tool=1ms"], "a recording has none"),
        ([recording, "--server-timing"], "--server-timing belongs to a profile"),
        ([recording, "--stdio", "--tls"], "--stdio is given"),
        (["simple", "--time-scale", "2"], "--time-scale belongs to a recording"),
        (["siple"], "there is no profile 'siple'"),
    ):
        ended = run("target", *words, "--quiet", folder=tmp_path)
        assert ended.code == 2 and sentence in ended.sentence(), (words, ended)


def test_a_recording_that_was_cut_off_is_served_as_far_as_it_goes(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(echo_server.SERVER)
    file, cut = tmp_path / "whole.jsonl.zst", tmp_path / "cut.jsonl.zst"
    upstream = f"stdio:{echo_server.interpreter()} {tmp_path / 'server.py'} 0"
    with SyncClient([*COMMAND, "record", "--upstream", upstream, "--out", str(file)]) as client:
        client.call_tool("echo", {"text": "tea"})
        until = time.monotonic() + LIMIT_S
        while not (file.exists() and "tools/call" in json.dumps(_core.Recording.load(str(file)).events())):
            assert time.monotonic() < until, "the call was not written"
        # The recorder goes on, so the file has no end.
        cut.write_bytes(file.read_bytes())
    recorded = _core.RecordedServer(str(cut))
    assert recorded.summary()["partial"] and recorded.summary()["answers"]["initialize"] == 1
    assert not _core.RecordedServer(str(recording)).summary()["partial"]


def test_answers_longer_than_the_body_limit_are_refused(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(echo_server.SERVER)
    file = tmp_path / "short.jsonl.zst"
    upstream = f"stdio:{echo_server.interpreter()} {tmp_path / 'server.py'} 0"
    words = ["record", "--upstream", upstream, "--out", str(file), "--body-limit", "2000"]
    with SyncClient([*COMMAND, *words]) as client:
        for text in ("short", "x" * 1_500):
            client.call_tool("echo", {"text": text})
    assert _core.RecordedServer(str(file)).summary()["cut"] == 1
    with serve_recording(file) as url, SyncClient(url) as client:
        assert client.call_tool("echo", {"text": "short"}).content[0].text == "short"
        with pytest.raises(MCPError, match="record with a larger --body-limit"):
            client.call_tool("echo", {"text": "x" * 1_500})


def test_the_fixture_serves_a_recording(recording: Path, mcp_recording: Any) -> None:
    url = mcp_recording(recording, match="lenient")
    with SyncClient(url) as client:
        assert client.call_tool("echo", {"text": "milk"}).content[0].text == "tea"
    with pytest.raises(ValueError, match="strict or lenient"):
        mcp_recording(recording, match="exact")


def test_the_fixture_s_server_ends_with_the_test(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "test_client.py").write_text(
        f"URLS = []\n"
        f"def test_one(mcp_recording):\n"
        f"    URLS.append(mcp_recording({str(recording)!r}))\n"
        f"def test_two():\n"
        f"    import pytest\n"
        f"    from mcpace.client import SyncClient\n"
        f"    with pytest.raises(Exception):\n"
        f"        SyncClient(URLS[0]).connect()\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S)
    assert re.search(r"^2 passed", done.stdout, re.M), done.stdout + done.stderr
