"""Parsing of TARGET."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpace.lab import targets
from mcpace.lab.errors import UsageProblem


def test_profiles_know_their_way_in_and_their_tool() -> None:
    assert targets.parse_target("profile:simple").authentication() == {"kind": "none"}
    assert targets.parse_target("profile:notion").authentication() == {"kind": "oauth", "consent": "follow"}
    github = targets.parse_target("profile:github")
    assert github.authentication()["kind"] == "bearer" and github.token
    assert github.tool == targets.GREET


def test_the_github_token_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(targets.GITHUB_TOKEN_VARIABLE, "from-outside")
    assert targets.parse_target("profile:github").token == "from-outside"


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
    target = targets.parse_target(text)
    assert target.name == name
    assert ("PLANTED" in " ".join(target.command)) == ("PLANTED" in text)


def test_commands_are_words_not_shell() -> None:
    assert targets.parse_target("stdio:python 'my server.py' --x; rm -rf /").command[1] == "my server.py"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("profile:notoin", "profile:notion"),
        ("notion", "profile:notion"),
        ("profile:zzz", "there are"),
        ("http://", "names no host"),
        ("stdio:", "needs a command"),
        ("stdio:'x", "cannot read the command"),
        ("ftp://x", "is not a target"),
    ],
)
def test_what_is_no_target_is_refused_with_a_hint(text: str, says: str) -> None:
    with pytest.raises(UsageProblem, match=says):
        targets.parse_target(text)


@pytest.mark.parametrize("text", ["stdio:\udcff", "http://127.0.0.1:1/\udcff", "http://\ud800/"])
def test_a_target_that_is_not_unicode_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem, match="is not UTF-8 text"):
        targets.parse_target(text)


def test_a_token_that_is_not_unicode_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(targets.TOKEN_VARIABLE, "PLANTED\udcff")
    with pytest.raises(UsageProblem, match="MCPACE_TOKEN is not UTF-8 text") as refused:
        targets.parse_target("http://h/", auth="bearer")
    assert "PLANTED" not in str(refused.value)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"command": "\ud800"}, "command is not UTF-8 text"),
        ({"command": "x", "env": {"A": "\ud800"}}, "env.A is not UTF-8 text"),
        ({"command": "x", "env": {"\ud800": "A"}}, "env has a name that is not UTF-8 text"),
        ({"url": "http://h/", "headers": {"X-Key": "\ud800"}}, "headers.X-Key is not UTF-8 text"),
    ],
)
def test_a_configuration_with_half_of_a_surrogate_pair_is_refused(
    tmp_path: Path, entry: dict[str, object], says: str
) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"x": entry}}))
    with pytest.raises(UsageProblem, match=says):
        targets.parse_target("x", config=tmp_path / "mcp.json")


def test_a_long_configuration_with_comments_is_read(tmp_path: Path) -> None:
    servers = '"mcpServers": {"x": {"url": "http://127.0.0.1:1/mcp"}}'
    (tmp_path / "mcp.json").write_text("{ // numbers\n" + '"a": [' + "0," * 50_000 + "],\n" + servers + "}")
    assert targets.parse_target("x", config=tmp_path / "mcp.json").url == "http://127.0.0.1:1/mcp"


def test_bearer_without_a_token_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(targets.TOKEN_VARIABLE, raising=False)
    with pytest.raises(UsageProblem, match=targets.TOKEN_VARIABLE):
        targets.parse_target("http://127.0.0.1:1/mcp", auth="bearer")


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
        "file": {"url": "ftp://u:PLANTED@localhost/mcp"},
    }
    path = config(tmp_path, {"mcpServers": servers})
    web = targets.parse_target("web", config=path)
    assert (web.url, web.auth, web.token) == ("http://127.0.0.1:1/mcp", "bearer", "abc")
    local = targets.parse_target("local", config=path)
    assert (local.command, local.environment) == (("python", "-m", "x"), (("A", "1"),))
    for name, says in (
        ("wbe", "Did you mean web"),
        ("broken", "neither url nor command"),
        ("file", "must begin with http:// or https://"),
    ):
        with pytest.raises(UsageProblem, match=says) as refused:
            targets.parse_target(name, config=path)
        assert "PLANTED" not in str(refused.value)


def test_a_configuration_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="cannot read"):
        targets.parse_target("x", config=tmp_path / "absent.json")
    with pytest.raises(UsageProblem, match="mcpServers"):
        targets.parse_target("x", config=config(tmp_path, []))


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (
            {"url": "http://h/mcp", "headers": {"X-Key": "${UNSET_KEY}"}},
            "headers.X-Key needs .* UNSET_KEY, which is not",
        ),
        ({"command": "x", "args": ["${UNSET_KEY}"]}, r"args\[0\] needs the environment variable UNSET_KEY"),
        ({"command": "x", "env": {"A": "${input:key}"}}, "env.A needs the input key, .* variable MCPACE_INPUT_KEY"),
        ({"command": "x", "env": {"A": "${command:key}"}}, "env.A has .*command:key.*, which mcpace can't resolve"),
        ({"command": "x", "env": {"A": None}}, "env.A must be a string, not null"),
        ({"command": "x", "args": "-m"}, "args must be an array, not a string"),
        ({"url": "http://h/mcp", "headers": {"Host": "a"}}, "the header host belongs to the protocol"),
        ({"url": "http://h/mcp", "headers": {"X": "a\nb"}}, "the header x has control characters"),
        (None, "must be an object, not null"),
    ],
)
def test_an_unusable_entry_names_file_server_and_member(
    entry: object, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UNSET_KEY", raising=False)
    path = config(tmp_path, {"mcpServers": {"x": entry}})
    with pytest.raises(UsageProblem, match=says) as problem:
        targets.parse_target("x", config=path)
    assert "mcp.json: server 'x'" in str(problem.value)


def test_variables_and_headers_of_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM", "blue")
    monkeypatch.delenv("UNSET_KEY", raising=False)
    entry = {
        "url": "http://${UNSET_HOST:-127.0.0.1}/mcp",
        "headers": {"X-Team": "${env:TEAM}", "X-Folder": "${workspaceFolder}", "X-Price": "$5"},
    }
    (tmp_path / ".vscode").mkdir()
    target = targets.parse_target("x", config=config(tmp_path / ".vscode", {"servers": {"x": entry}}))
    assert target.url == "http://127.0.0.1/mcp"
    assert dict(target.headers) == {"x-team": "blue", "x-folder": str(tmp_path), "x-price": "$5"}


def test_headers_of_the_command_line_replace_those_of_the_configuration(tmp_path: Path) -> None:
    entry = {"url": "http://h/mcp", "headers": {"Authorization": "Bearer FROM-FILE", "X-A": "1", "X-B": "2"}}
    path = config(tmp_path, {"mcpServers": {"x": entry, "p": {"command": "y"}}})
    target = targets.parse_target("x", config=path, headers=(("authorization", "Key MINE"), ("x-a", "3")))
    assert (target.auth, target.token) == ("none", None)
    assert dict(target.headers) == {"authorization": "Key MINE", "x-a": "3", "x-b": "2"}
    for place in ("p", "profile:simple"):
        with pytest.raises(UsageProblem, match="needs a target with a URL"):
            targets.parse_target(place, config=path, headers=(("x-a", "3"),))


def test_a_configuration_may_have_comments_and_trailing_commas(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('\ufeff{ // servers\n "servers": { /* one */ "x": { "command": "a//b", "args": ["1",], }, },\n}')
    assert targets.parse_target("x", config=path).command == ("a//b", "1")
    path.write_text('{"servers": {"x": [1,')
    with pytest.raises(UsageProblem, match="is not JSON"):
        targets.parse_target("x", config=path)


@pytest.mark.parametrize("scheme", ["http", "https", "postgres", "mongodb+srv", "redis", "amqp", "x-custom.1"])
@pytest.mark.parametrize(
    "form",
    ["{}", "--db={}", "DATABASE_URL={}", "jdbc:{}", '\'{{"url": "{}"}}\'', "-e {}", "--dsn {}"],
)
@pytest.mark.parametrize(
    "url",
    [
        "u:PLANTED@h/db", "u:PLANTED@h:5432", "PLANTED@h/db", ":PLANTED@h/0", "u:PLA@NTED@h/db", "h?x=PLANTED",
        "u:PLANTED#PLANTED@h/db", "h/db?password=PLANTED", "h/db?a=b&token=PLANTED#PLANTED", "u:PLANTED/x@h/db",
    ],
)  # fmt: skip
def test_a_commands_urls_are_shown_without_their_secrets(scheme: str, form: str, url: str) -> None:
    target = targets.parse_target(f"stdio:server {form.format(f'{scheme}://{url}')} last")
    assert "PLA" not in target.name and "NTED" not in target.name
    assert target.name.endswith(" last") and f"{scheme}://h" in target.name
    assert "PLA" in " ".join(target.command)


@pytest.mark.parametrize(
    "word", ["https://registry/@scope/p", "http://h:80/@a/b", "@scope/p", "a=b@c", "http://[::1]:1/x"]
)
def test_words_without_secrets_are_shown_as_they_are(word: str) -> None:
    assert targets.parse_target(f"stdio:server {word}").name == f"stdio:server {word}"
