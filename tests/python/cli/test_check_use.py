"""``mcpace check`` names servers and tools that nobody called in the recordings of the flight recorder."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpace.lab.check.recorded_use import recorded_use
from mcpace.report.model.run import Run
from support.commands import run
from support.wrapped_host import Host, command_line, configure, prepare, root, state, wrap


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return prepare(tmp_path)


def record_session(file: Path, *tools: str) -> None:
    """One session of a host with the wrapped server."""
    host = Host(command_line(file))
    host.initialize()
    host.request("tools/list")
    for tool in tools:
        host.call(tool, **({"a": 1, "b": 2} if tool == "add" else {}))
    host.end()


def test_tools_that_nobody_called_are_named_with_what_they_take(place: Path) -> None:
    file = configure(place)
    assert recorded_use(root(place), file, "calculator") is None
    assert wrap(place, file).code == 0
    for tools in (("add",), (), ("add", "add")):
        record_session(file, *tools)
    assert run("unwrap", file, folder=place, environment=state(place)).code == 0
    use = recorded_use(root(place), file, "calculator")
    assert use is not None and (use.sessions, use.calls) == (3, {"add": 3})
    assert recorded_use(root(place), file, "other") is None
    ended = run("check", file, "--rounds", "1", "--out", place / "run.json", folder=place, environment=state(place))
    shown = " ".join(ended.stdout.split())
    assert ended.code == 0 and "Not called in your recordings" in shown
    (listing,) = [case for case in Run.load(place / "run.json").cases if case.operation == "list"]
    saved = sum(tool.tokens for tool in listing.tools or [] if tool.name != "add")
    assert f"take {saved} of {listing.listing_tokens} tokens less" in shown
    assert "not called: " in shown and "payload" in shown and "switch the server off" not in shown


def test_a_server_that_nobody_called_is_named_after_three_sessions(place: Path) -> None:
    file = configure(place)
    assert wrap(place, file).code == 0
    for sessions in (2, 3):
        while (use := recorded_use(root(place), file, "calculator")) is None or use.sessions < sessions:
            record_session(file)
        assert run("unwrap", file, folder=place, environment=state(place)).code == 0
        ended = run("check", file, "--rounds", "1", "--calls", "1", folder=place, environment=state(place))
        assert ("no tool was called: switch the server off" in " ".join(ended.stdout.split())) is (sessions == 3)
        assert wrap(place, file).code == 0
