"""TARGET as users type it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpace.lab import targets
from mcpace.lab.errors import UsageProblem


def test_profiles_know_their_way_in_and_their_tool() -> None:
    assert targets.parse("profile:simple").authentication() == {"kind": "none"}
    assert targets.parse("profile:notion").authentication() == {"kind": "oauth", "consent": "follow"}
    github = targets.parse("profile:github")
    assert github.authentication()["kind"] == "bearer" and github.token
    assert github.tool == targets.GREET


def test_the_github_token_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(targets.GITHUB_TOKEN_VARIABLE, "from-outside")
    assert targets.parse("profile:github").token == "from-outside"


def test_tokens_are_not_in_the_repr() -> None:
    assert "SECRET" not in repr(targets.Target("x", url="http://h/", auth="bearer", token="SECRET"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("stdio:python srv.py --api-key PLANTED --port 1", "stdio:python srv.py --api-key … --port 1"),
        ("stdio:srv --token=PLANTED 'a b'", "stdio:srv --token=… 'a b'"),
        ("stdio:env DB_PASSWORD='PLANTED x' srv", "stdio:env DB_PASSWORD=… srv"),
        ("stdio:npx mcp-remote https://u:PLANTED@h/mcp?sig=PLANTED", "stdio:npx mcp-remote https://h/mcp?sig=…"),
        ("stdio:npx mcp-remote --header 'Authorization: Bearer PLANTED'",
         "stdio:npx mcp-remote --header Authorization: …"),
        ("stdio:python  'my server.py' --no-auth --x=1", "stdio:python  'my server.py' --no-auth --x=1"),
    ],
)  # fmt: skip
def test_what_is_secret_in_a_command_is_run_and_not_shown(text: str, name: str) -> None:
    target = targets.parse(text)
    assert target.name == name
    assert ("PLANTED" in " ".join(target.command)) == ("PLANTED" in text)


def test_commands_are_words_not_shell() -> None:
    assert targets.parse("stdio:python 'my server.py' --x; rm -rf /").command[1] == "my server.py"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("profile:notoin", "profile:notion"),
        ("notion", "profile:notion"),
        ("profile:zzz", "there are"),
        ("http://", "names no host"),
        ("stdio:", "needs a command"),
        ("stdio:'x", "cannot read the command"),
        ("ftp://x", "is no target"),
    ],
)
def test_what_is_no_target_is_refused_with_a_hint(text: str, says: str) -> None:
    with pytest.raises(UsageProblem, match=says):
        targets.parse(text)


def test_bearer_without_a_token_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(targets.TOKEN_VARIABLE, raising=False)
    with pytest.raises(UsageProblem, match=targets.TOKEN_VARIABLE):
        targets.parse("http://127.0.0.1:1/mcp", auth="bearer")


def config(folder: Path, document: object) -> Path:
    path = folder / "mcp.json"
    path.write_text(json.dumps(document))
    return path


def test_servers_out_of_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "abc")
    servers = {
        "web": {"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer ${MY_TOKEN}"}},
        "local": {"command": "python", "args": ["-m", "x"], "env": {"A": "1"}},
        "broken": {},
    }
    path = config(tmp_path, {"mcpServers": servers})
    web = targets.parse("web", config=path)
    assert (web.url, web.auth, web.token) == ("http://127.0.0.1:1/mcp", "bearer", "abc")
    local = targets.parse("local", config=path)
    assert (local.command, local.environment) == (("python", "-m", "x"), (("A", "1"),))
    for name, says in (("wbe", "Did you mean web"), ("broken", "neither url nor command")):
        with pytest.raises(UsageProblem, match=says):
            targets.parse(name, config=path)


def test_a_configuration_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="cannot read"):
        targets.parse("x", config=tmp_path / "absent.json")
    with pytest.raises(UsageProblem, match="mcpServers"):
        targets.parse("x", config=config(tmp_path, []))
