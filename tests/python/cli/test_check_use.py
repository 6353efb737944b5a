"""``mcpace check`` names servers and tools that nobody called in the recordings of the flight recorder."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from mcpace.lab.check.recorded_use import recorded_use
from mcpace.report.model.run import Run
from mcpace.report.model.start import RecordedUse
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
        host.request("tools/call", name=tool, arguments={"a": 1, "b": 2} if tool == "add" else {})
    host.end()


def test_tools_that_nobody_called_are_named_with_what_they_take(place: Path) -> None:
    file = configure(place)
    assert recorded_use(root(place), file, "calculator") is None
    assert wrap(place, file).code == 0
    for tools in (("add",), (), ("add", "add")):
        record_session(file, *tools)
    assert run("unwrap", file, folder=place, environment=state(place)).code == 0
    use = recorded_use(root(place), file, "calculator")
    assert use is not None and (use.sessions, use.calls, use.answered) == (3, {"add": 3}, ["add"])
    assert recorded_use(root(place), file, "other") is None
    ended = run("check", file, "--rounds", "1", "--out", place / "run.json", folder=place, environment=state(place))
    shown = " ".join(ended.stdout.split())
    assert ended.code == 0 and "Not called in your recordings" in shown
    (listing,) = [case for case in Run.load(place / "run.json").cases if case.operation == "list"]
    saved = sum(tool.tokens for tool in listing.tools or [] if tool.name != "add")
    assert f"take {saved} of {listing.listing_tokens} tokens less" in shown
    assert "not called: " in shown and "payload" in shown and "switch the server off" not in shown


def test_a_server_that_nobody_called_is_named_after_three_sessions(place: Path) -> None:
    """A call of a tool that the server does not have is no use of the server."""
    file = configure(place)
    assert wrap(place, file).code == 0
    for sessions in (2, 3):
        while (use := recorded_use(root(place), file, "calculator")) is None or use.sessions < sessions:
            record_session(file, "subtract")
        assert (use.calls, use.answered) == ({"subtract": sessions}, [])
        assert run("unwrap", file, folder=place, environment=state(place)).code == 0
        ended = run("check", file, "--rounds", "1", "--calls", "1", folder=place, environment=state(place))
        assert ("no tool was called: switch the server off" in " ".join(ended.stdout.split())) is (sessions == 3)
        assert wrap(place, file).code == 0


@pytest.mark.parametrize(
    ("calls", "answered", "is_unused"),
    [
        ({}, [], True),
        ({"ghost": 3}, [], True),
        # The server refuses each call, and has the tool.
        ({"ghost": 3, "pay": 1}, [], False),
        # The server had the tool under another name.
        ({"pay_2024": 3}, ["pay_2024"], False),
    ],
)
def test_a_call_counts_where_the_server_has_or_had_the_tool(
    calls: dict[str, int], answered: list[str], is_unused: bool
) -> None:
    use = RecordedUse(sessions=3, since="2026-01-01", calls=calls, answered=answered)
    assert use.shows_unused_server(["add", "pay"]) is is_unused


def test_advice_of_recordings_is_tried_together_and_can_be_applied(place: Path) -> None:
    file = place / ".codex" / "config.toml"
    file.parent.mkdir()

    def write(first: str = "", second: str = "") -> None:
        entries = {"calculator": first, "idle": second}
        file.write_text(
            "".join(
                f"[mcp_servers.{name}]\ncommand = '{sys.executable}'\nargs = ['server.py', 'pid-{name}']\n"
                f"cwd = '{place}'\n{more}\n"
                for name, more in entries.items()
            )
        )

    write()
    assert wrap(place, file).code == 0
    wrapped = tomllib.loads(file.read_text())["mcp_servers"]
    for tools in (("add",), (), ()):
        for name, called in (("calculator", tools), ("idle", ())):
            entry = wrapped[name]
            host = Host([entry["command"], *entry["args"]], folder=place)
            host.initialize()
            host.request("tools/list")
            for tool in called:
                host.call(tool, a=1, b=2)
            host.end()
    assert run("unwrap", file, folder=place, environment=state(place)).code == 0

    def check() -> tuple[Run, str]:
        out = place / "run.json"
        ended = run("check", file, "--rounds", "1", "--out", out, folder=place, environment=state(place))
        assert ended.code == 0, ended.stderr
        return Run.load(out), " ".join(ended.stdout.split())

    before, shown = check()
    assert before.check is not None and before.check.advised is not None
    assert (before.check.advised.servers, len(before.check.advised.ready_s)) == (1, 1)
    listings = {case.target: case for case in before.cases if case.operation == "list"}
    left = sum(tool.tokens for tool in listings["calculator"].tools or [] if tool.name == "add")
    assert "Tried with all advice below: " in shown and f"the tools take {left} tokens" in shown
    assert 'keep the tools that were called: enabled_tools = ["add"]' in shown
    assert "switch the server off, with enabled = false" in shown

    write('enabled_tools = ["add"]', "enabled = false")
    after, shown = check()
    (listing,) = [case for case in after.cases if case.operation == "list"]
    assert (listing.listing_tools, listing.listing_tokens) == (1, left)
    assert after.check is not None and after.check.advised is None
    assert "Tried with" not in shown and "Not called" not in shown
