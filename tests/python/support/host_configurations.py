"""Configurations of hosts in the shapes that real hosts and the documents of real servers have.

The texts are written for these tests. Layout, comments, key order and quoting vary on purpose.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class HostConfiguration:
    """A configuration by its name, which tells the format of its text."""

    name: str
    text: str

    @property
    def is_toml(self) -> bool:
        return self.name.endswith(".toml")


def host_configurations() -> list[HostConfiguration]:
    """All of them; their names differ."""
    return [*_written(), *_laid_out()]


ENTRIES: dict[str, dict[str, Any]] = {
    "filesystem": {
        "command": "npx",
        "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/user/My Documents", "C:\\Users\\user"],
    },
    "git": {"command": "uvx", "args": ["mcp-server-git", "--repository", "${workspaceFolder}"]},
    "github": {
        "command": "docker",
        "args": ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"],
        "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "${env:GITHUB_TOKEN}"},
    },
    "docs": {
        "type": "stdio",
        "command": "uv",
        "args": ["--directory", "/srv/docs", "run", "server.py"],
        "env": {"FASTMCP_LOG_LEVEL": "ERROR"},
        "disabled": False,
        "autoApprove": [],
    },
    "bare": {"command": "/opt/tools/server"},
    "bare-with-env": {"env": {"A": "1"}, "command": "mcp-server-time", "cwd": "/srv"},
    "no words": {"args": [], "command": "mcp-server-fetch"},
    "remote": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    "events": {"type": "sse", "url": "https://example.com/sse"},
    "gemini": {"httpUrl": "https://example.com/mcp", "timeout": 5000, "trust": True},
    "quotes \"'": {"command": "python", "args": ["-c", 'print("\\u00e9 é 😀")', "", "a b", "$HOME", "'"]},
}


def _laid_out() -> Iterator[HostConfiguration]:
    """The entries in the layouts of programs that write configurations."""
    for table in ("mcpServers", "servers", "context_servers"):
        for name, layout in {
            "two": {"indent": 2},
            "four": {"indent": 4, "ensure_ascii": False},
            "tabs": {"indent": "\t"},
            "line": {},
            "dense": {"separators": (",", ":")},
        }.items():
            yield HostConfiguration(f"{table}-{name}.json", json.dumps({table: ENTRIES}, **layout) + "\n")
    for server, entry in ENTRIES.items():
        text = json.dumps({"mcpServers": {server: entry}}, indent=2)
        yield HostConfiguration(f"only-{list(ENTRIES).index(server)}.json", text)
        yield HostConfiguration(f"crlf-{list(ENTRIES).index(server)}.json", text.replace("\n", "\r\n") + "\r\n")
    project = {"/home/user/shop": {"allowedTools": [], "mcpServers": ENTRIES, "history": [{"display": "command"}]}}
    claude = {"numStartups": 12, "tipsHistory": {"a": 1}, "mcpServers": ENTRIES, "projects": project}
    yield HostConfiguration("claude.json", json.dumps(claude, indent=2))


def _written() -> Iterator[HostConfiguration]:
    for name, text in TEXTS.items():
        yield HostConfiguration(name, text)


TEXTS = {
    "vscode-comments.json": """\
{
  // The token is asked for once.
  "inputs": [{ "type": "promptString", "id": "token", "description": "Token", "password": true, }],
  "servers": {
    /* npx "downloads" at each start */
    "everything": {
      "command": "npx", // slow
      "args": [
        // no question
        "-y",
        "@modelcontextprotocol/server-everything", /* newest */
      ],
      "env": { "TOKEN": "${input:token}", },
    },
    "time": { "command": "uvx" /* no args */, },
    "empty": { "command": "x", "args": [ /* none */ ], },
    "web": { "type": "http", "url": "https://example.com/mcp", }, // remote
  },
}
""",
    "vscode-settings.json": """\
{
\t"editor.fontSize": 13, // points
\t"mcp": {
\t\t"inputs": [],
\t\t"servers": {
\t\t\t"memory": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"] },
\t\t},
\t},
\t"[json]": { "editor.tabSize": 2 },
}""",
    "vscode-dotted.json": '{"mcp.servers": {"a": {"command": "a", "args": ["b"]}}, "servers": []}',
    "byte-order-mark.json": '\ufeff{"mcpServers": {"a": {"command": "a", "args": ["b"]}}}',
    "escapes.json": '{"mcp\\u0053ervers":{"\\u0061":{"comm\\u0061nd":"\\u006epx","args":["\\ud83d\\ude00","\\/"]}}}',
    "cursor.json": """\
{
    "mcpServers": {
        "server-name": {
            "command": "${env:HOME}/bin/server",
            "args": ["--root", "${userHome}", "mcp-server.py"],
            "env": {
                "API_KEY": "value"
            }
        },
        "remote": { "url": "http://localhost:3000/sse" }
    }
}
""",
    "one-entry-a-line.json": """\
{"mcpServers": {
"a": {"command": "npx", "args": ["-y", "a"]},

"b": {"args": ["-m", "b"],
      "command": "python"},
"c": {"command": "c",
      "args": [

      ]}}}
""",
    "windsurf.json": '{"mcpServers": {"a": {"serverUrl": "https://example.com/sse"}, "b": {"command": "b"}}}',
    "opencode.json": """\
{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "files": { "type": "local", "command": ["npx", "-y", "files"], "enabled": true },
    "bare": { "type": "local", "command": [
      "bare"
    ], "environment": {"A": "1"} },
    "remote": { "type": "remote", "url": "https://example.com/mcp" },
  },
}
""",
    "gemini.json": """\
{
  "theme": "Default",
  "mcp": { "allowed": ["python"], "serverCommand": "x" },
  "mcpServers": {
    "python": {
      "command": "python",
      "args": ["-m", "my_server", "--port", "8080"],
      "env": { "KEY": "$MY_TOKEN" },
      "timeout": 15000
    }
  }
}
""",
    "zed.json": """\
// Zed settings
{
  "context_servers": {
    "own": { "source": "custom", "command": "node", "args": ["/srv/own.js"], "env": {} },
    "old": { "command": { "path": "node", "args": ["/srv/old.js"] } },
  },
}
""",
    "odd-values.json": """\
{"mcpServers": {
  "null args": {"command": "a", "args": null},
  "text args": {"command": "a", "args": "b c"},
  "number": {"command": 7},
  "empty command": {"command": []},
  "twice": {"command": "a", "command": "b", "args": []},
  "both": {"command": "a", "url": "https://example.com", "args": [1, true, null]},
  "string": "a", "list": [], "nothing": {}
}}
""",
    "codex.toml": """\
model = "gpt-5"  # the model
# servers
[mcp_servers.files]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", 'C:\\Users\\user']
env = { "API_KEY" = "value" }
startup_timeout_sec = 20

[mcp_servers.files.tools.read]
approval_mode = "approve"

[mcp_servers.bare]
  command = 'mcp-server-time' # literal
  enabled = true

[mcp_servers.figma]
url = "https://mcp.example.com/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { "X-Region" = "eu" }

[mcp_servers."with spaces"]
args = [
  "run", # the task
  "server.py",
]
command = "uv"
[mcp_servers."with spaces".env]
A = "1"

[projects."/home/user/shop"]
trust_level = "trusted"
""",
    "inline.toml": 'mcp_servers = { a = { command = "a" }, b = { command = "b", args = ["c"] }, c.command = "d" }\n',
    "dotted.toml": """\
mcp_servers.a.command = "a"
mcp_servers.b.command = "b"
mcp_servers.b.args = []
mcp_servers."c.d".command = "c"
""",
    "crlf.toml": '[mcp_servers.a]\r\ncommand = "a"\r\n\r\n[mcp_servers.b]\r\ncommand = "b"\r\nargs = ["c"]\r\n',
    "no-newline.toml": '[mcp_servers.a]\ncommand = "a"',
    "multi-line-strings.toml": "[mcp_servers.a]\ncommand = '''a'''\nargs = ['''\nb\n''', \"\"\"c\\\n  d\"\"\"]\n",
}
