"""Configuration files of hosts: where they are found, and how each host resolves them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpace.lab import host_files
from mcpace.lab.check.servers import read_servers
from mcpace.lab.errors import UsageProblem
from mcpace.lab.hosts.flight_wrap import wrap_text
from mcpace.lab.server_configuration import ConfiguredServer, read_configuration
from mcpace.lab.targets import parse_target
from mcpace.lab_tools.configuration_check import check_configuration

CODEX = """
model = "gpt-5"

[mcp_servers.files]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "${HOME}"]
env = { LEVEL = "debug" }
cwd = "work"

[mcp_servers.web]
url = "https://example.com/mcp"
bearer_token_env_var = "WEB_TOKEN"
http_headers = { "X-Team" = "blue" }
env_http_headers = { "X-Key" = "WEB_KEY" }

[mcp_servers.off]
command = "x"
enabled = false
"""


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def server(path: Path, name: str = "x") -> ConfiguredServer:
    return read_configuration(path).server(name)


def test_codex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_TOKEN", "abc")
    monkeypatch.setenv("WEB_KEY", "def")
    (tmp_path / "work").mkdir()
    path = write(tmp_path / ".codex" / "config.toml", CODEX)
    files = server(path, "files")
    # Codex replaces no variables.
    assert files.command == ("npx", "-y", "@modelcontextprotocol/server-filesystem", "${HOME}")
    assert (files.environment, files.folder) == ((("LEVEL", "debug"),), tmp_path / "work")
    headers = {"x-team": "blue", "x-key": "def", "authorization": "Bearer abc"}
    assert dict(server(path, "web").headers) == headers
    assert read_configuration(path).switched_off == {"off"}
    target = parse_target("web", config=path)
    assert (target.auth, target.token) == ("bearer", "abc")
    assert parse_target("files", config=path).command[:4] == ("env", "-C", str(tmp_path / "work"), "npx")


def test_codex_without_its_token_names_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_KEY", "def")
    monkeypatch.delenv("WEB_TOKEN", raising=False)
    path = write(tmp_path / "config.toml", CODEX)
    with pytest.raises(UsageProblem, match=r"bearer_token_env_var needs the environment variable WEB_TOKEN"):
        server(path, "web")
    with pytest.raises(UsageProblem, match=r"cwd is .*work, which is no folder"):
        server(path, "files")


@pytest.mark.parametrize("text", ["[mcp_servers.x", "a = 1", "mcp_servers = 3"])
def test_a_toml_file_without_servers_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match=r"config\.toml (is not TOML|has no table)"):
        read_configuration(write(tmp_path / "config.toml", text))


def test_gemini_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "abc")
    monkeypatch.delenv("UNSET_KEY", raising=False)
    document = {
        "mcpServers": {
            "x": {"httpUrl": "https://example.com/mcp", "headers": {"Authorization": "Bearer $KEY"}},
            "y": {"command": "python", "args": ["$UNSET_KEY"]},
            "z": {"command": "python"},
        },
        "mcp": {"excluded": ["z"]},
    }
    path = write(tmp_path / ".gemini" / "settings.json", document)
    assert server(path).url == "https://example.com/mcp"
    assert dict(server(path).headers) == {"authorization": "Bearer abc"}
    assert read_configuration(path).switched_off == {"z"}
    with pytest.raises(UsageProblem, match=r"needs the environment variable UNSET_KEY"):
        server(path, "y")


@pytest.mark.parametrize(
    ("place", "text", "only", "left_out"),
    [
        (".codex/config.toml", "[mcp_servers.x]\ncommand = 'a'\nenabled_tools = ['b']", {"b"}, set()),
        (".codex/config.toml", "[mcp_servers.x]\ncommand = 'a'\ndisabled_tools = ['b', 'c']", None, {"b", "c"}),
        (".gemini/settings.json", '{"mcpServers": {"x": {"command": "a", "includeTools": ["b(c)"]}}}', {"b"}, set()),
        (".gemini/settings.json", '{"mcpServers": {"x": {"command": "a", "excludeTools": "b"}}}', None, set()),
        ("mcp.json", '{"mcpServers": {"x": {"command": "a", "includeTools": ["b"]}}}', None, set()),
    ],
)
def test_tools_that_the_host_keeps_from_the_model(
    place: str, text: str, only: set[str] | None, left_out: set[str], tmp_path: Path
) -> None:
    path = write(tmp_path / place, text)
    assert read_configuration(path).tool_filter("x") == (only, left_out)
    (checked,) = read_servers([path]).servers
    takes = [name for name in ("b", "c", "d") if checked.takes_tool(name)]
    assert takes == [name for name in ("b", "c", "d") if name in (only or "bcd") and name not in left_out]


def test_vs_code_inputs_and_a_file_of_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / ".env", "# keys\nexport A='one'\nB = two # a comment\nC=three\n")
    text = """{
      // asks once
      "inputs": [{"id": "api-key", "type": "promptString"}, {"id": "zone", "default": "UTC"},],
      "servers": {"x": {"type": "stdio", "command": "python", "args": ["${input:zone}", "${workspaceFolderBasename}"],
                        "envFile": "${workspaceFolder}/.env", "env": {"KEY": "${input:api-key}", "C": "4"}}},
    }"""
    path = write(tmp_path / ".vscode" / "mcp.json", text)
    with pytest.raises(UsageProblem, match=r"env.KEY needs the input api-key, .* variable MCPACE_INPUT_API_KEY"):
        server(path)
    monkeypatch.setenv("MCPACE_INPUT_API_KEY", "abc")
    found = server(path)
    assert found.command == ("python", "UTC", tmp_path.name)
    assert dict(found.environment) == {"A": "one", "B": "two", "C": "4", "KEY": "abc"}


def test_a_long_file_with_comments_is_read(tmp_path: Path) -> None:
    text = f"""{{ // comment
      "history": [{", ".join(['"one", 1.5, true, null, {}'] * 10_000)},],
      "mcpServers": {{"x": {{"command": "a", "args": ["-n", 3], "disabled": false}}}}, }}"""
    path = write(tmp_path / "mcp.json", text)
    assert (server(path).command, read_configuration(path).switched_off) == (("a", "-n", "3"), frozenset())


@pytest.mark.parametrize("text", ["{'mcpServers': {}}", "{", "[" * 100_000, "{} // a\n{}"])
def test_a_file_that_hosts_refuse_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match=r"mcp\.json is not JSON: "):
        read_configuration(write(tmp_path / "mcp.json", text))


def test_a_server_behind_the_flight_recorder_has_its_own_command(tmp_path: Path) -> None:
    text = '{"mcpServers": {"x": {"command": "no-such-program", "args": ["-y"]}, "y": {"command": "b"}}}'
    wrapped = wrap_text(text, lambda entry: tmp_path / entry.name, False).text
    for name in ("mcp.json", ".gemini/settings.json"):
        path = write(tmp_path / name, wrapped)
        assert [server(path, one).command for one in ("x", "y")] == [("no-such-program", "-y"), ("b",)]
        checked = {one.name: one for one in check_configuration(path, name).servers}
        assert (checked["x"].program, checked["x"].problems) == ("no-such-program", ["the program is not on PATH"])
        assert checked["y"].program == "b"


def test_a_broken_file_of_one_host_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr("sys.platform", "linux")
    for variable in ("CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    broken = write(tmp_path / ".cursor" / "mcp.json", "{ has no end")
    found = write(tmp_path / ".gemini" / "settings.json", {"mcpServers": {"x": {"command": "a"}}})
    checked = read_servers([])
    assert [one.label for one in checked.servers] == ["x"]
    [problem] = checked.problems
    assert problem.startswith(f"{broken} is not JSON: ")
    with pytest.raises(UsageProblem, match="is not JSON"):
        read_servers([found, broken])
    found.unlink()
    with pytest.raises(UsageProblem, match=r"no server to start is in .*mcp\.json; .*mcp\.json is not JSON"):
        read_servers([])


def test_vs_code_settings(tmp_path: Path) -> None:
    path = write(tmp_path / "Code" / "User" / "settings.json", {"mcp": {"servers": {"x": {"command": "a"}}}})
    assert (read_configuration(path).host, server(path).command) == (host_files.VS_CODE, ("a",))


def test_claude_desktop_replaces_no_variables(tmp_path: Path) -> None:
    document = {"mcpServers": {"x": {"command": "a", "args": ["${UNSET_KEY}"]}}}
    path = write(tmp_path / "claude_desktop_config.json", document)
    assert server(path).command == ("a", "${UNSET_KEY}")


def test_claude_code_adds_the_servers_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own = {"mcpServers": {"x": {"command": "own"}, "y": {"command": "b"}}, "disabledMcpServers": ["y"]}
    document = {"mcpServers": {"x": {"command": "user"}, "z": {"command": "c"}}, "projects": {str(tmp_path): own}}
    configuration = read_configuration(write(tmp_path / ".claude.json", document))
    assert configuration.server("x").command == ("own",)
    assert (set(configuration.entries), configuration.switched_off) == ({"x", "y", "z"}, {"y"})


def test_configurations_of_hosts_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    home, project = tmp_path / "home", tmp_path / "project"
    entry = {"mcpServers": {"x": {"command": "a"}}}
    places = [
        write(project / ".mcp.json", entry),
        write(project / ".vscode" / "mcp.json", {"servers": {"y": {"command": "b"}}}),
        write(home / ".cursor" / "mcp.json", entry),
        write(home / ".codex" / "config.toml", CODEX),
        write(home / ".gemini" / "settings.json", {"theme": "dark"}),
        write(home / ".config" / "Claude" / "claude_desktop_config.json", entry),
    ]
    assert host_files.project_configurations(project) == places[:2]
    assert host_files.user_configurations(home) == places[2:]
    assert [host_files.host_of(path).name for path in places] == [
        "Claude Code", "VS Code", "Cursor", "Codex", "Gemini CLI", "Claude Desktop",
    ]  # fmt: skip
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.chdir(project)
    # A name of several configurations is told apart by its host; settings without servers are no error.
    # The files of the current folder are read only where they are given.
    assert [one.label for one in read_servers([]).servers] == ["Cursor: x", "files", "web", "Claude Desktop: x"]
    given = [one.label for one in read_servers([*places[:3], places[5]]).servers]
    assert given == ["Claude Code: x", "y", "Cursor: x", "Claude Desktop: x"]
    assert read_servers([]).switched_off == ("off",)
    with pytest.raises(UsageProblem, match=r"settings\.json has no object"):
        read_servers([places[4]])


def test_without_any_configuration_the_message_says_what_to_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(UsageProblem, match=r"found no configuration .* mcpace check ~/.cursor/mcp.json"):
        read_servers([])
    write(tmp_path / ".mcp.json", {"mcpServers": {"x": {"command": "a"}}})
    with pytest.raises(UsageProblem, match=r"found no configuration .* mcpace check \.mcp\.json"):
        read_servers([])
