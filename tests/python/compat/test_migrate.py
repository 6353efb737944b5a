"""`mcpace migrate`: what it rewrites, what it leaves alone, and the table that it goes by."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from mcpace.migration import project as project_files
from mcpace.migration.counterparts import ADVICE, COUNTERPARTS, ENGINES, WHOLE
from mcpace.migration.rewriting import Unreadable, rewrite
from support.adoption import SDKS, interpreter
from support.commands import run

DONE, HIT, USAGE, UNREACHABLE = 0, 1, 2, 3

REWRITTEN = {
    "a name": ("from mcp.server.mcpserver import MCPServer\n", "from mcpace import MCPServer\n"),
    "another name": ("from mcp.server.fastmcp import FastMCP\n", "from mcpace import MCPServer as FastMCP\n"),
    "an alias": ("from mcp.server.fastmcp import FastMCP as F\n", "from mcpace import MCPServer as F\n"),
    "an alias that is mcpace's name": (
        "from mcp.server.fastmcp import FastMCP as MCPServer\n",
        "from mcpace import MCPServer as MCPServer\n",
    ),
    "FastMCP": ("from fastmcp import FastMCP, Context\n", "from mcpace.fastmcp import FastMCP, Context\n"),
    "layout and comments": (
        "from mcp.server.mcpserver import (  # one\n    Context,\n\n    MCPServer , # two\n)  # three\n",
        "from mcpace import (  # one\n    Context,\n\n    MCPServer , # two\n)  # three\n",
    ),
    "a backslash": (
        "from mcp.server.mcpserver \\\n    import MCPServer, \\\n    Context\n",
        "from mcpace \\\n    import MCPServer, \\\n    Context\n",
    ),
    "backslashes, and the last name stays behind": (
        "from mcp.types import \\\n    Tool, \\\n    NoSuchType\nx = 1\n",
        "from mcp.types import NoSuchType\nfrom mcpace.types import \\\n    Tool\nx = 1\n",
    ),
    "a package that is used otherwise, too": (
        "import mcp\nmcp.types.Tool\nmcp.ClientSession\n",
        "import mcpace.types\nimport mcp\nmcpace.types.Tool\nmcp.ClientSession\n",
    ),
    "an alias of a package that is used otherwise, too": (
        "import mcp.server.fastmcp as f\nf.FastMCP\nf.NoSuchName\n",
        "import mcpace\nimport mcp.server.fastmcp as f\nmcpace.MCPServer\nf.NoSuchName\n",
    ),
    "an argument with the name of a package": (
        "import mcp.types\ndef f(mcp): mcp.tool\nmcp.types.Tool\n",
        "import mcpace.types\ndef f(mcp): mcp.tool\nmcpace.types.Tool\n",
    ),
    "two targets on one line": (
        "from fastmcp.server.auth import AuthContext, JWTVerifier, require_scopes  # both\n",
        "from mcpace import JWTVerifier\nfrom mcpace.fastmcp import AuthContext, require_scopes  # both\n",
    ),
    "two targets on lines of their own": (
        "from fastmcp.server.auth import (\n    AuthContext,  # a\n    JWTVerifier,  # j\n)\n",
        "from mcpace import JWTVerifier  # j\nfrom mcpace.fastmcp import (\n    AuthContext,  # a\n)\n",
    ),
    "the last names move": (
        "from mcp.types import TextContent, NoSuchName, NoSuchType\n",
        "from mcp.types import NoSuchName, NoSuchType\nfrom mcpace.types import TextContent\n",
    ),
    "the first name moves": (
        "from mcp.types import NoSuchName, TextContent\n",
        "from mcpace.types import TextContent\nfrom mcp.types import NoSuchName\n",
    ),
    "statements on one line": (
        "if TYPE_CHECKING: from mcp.types import Tool, NoSuchType; x = 1\n",
        "if TYPE_CHECKING: from mcp.types import NoSuchType; from mcpace.types import Tool; x = 1\n",
    ),
    "an inner block": (
        "try:\n    from mcp.types import (Tool,\n        NoSuchType)\nexcept ImportError:\n    pass\n",
        "try:\n    from mcp.types import NoSuchType\n    from mcpace.types import (Tool)\n"
        "except ImportError:\n    pass\n",
    ),
    "a star": ("from mcp.types import *\n", "from mcpace.types import *\n"),
    "a module with a name": (
        "import mcp.types as t\nx: t.Tool\n",
        "import mcpace.types as t\nx: t.Tool\n",
    ),
    "a module of a package": (
        "from mcp import types\nx = types.TextContent\n",
        "import mcpace.types as types\nx = types.TextContent\n",
    ),
    "a module that mcpace spells otherwise": (
        "from mcp.server.fastmcp.prompts import base\nx = base.UserMessage\n",
        "import mcpace as base\nx = base.UserMessage\n",
    ),
    "attributes": (
        "import mcp.server.fastmcp\nserver = mcp.server.fastmcp.FastMCP('é', x=mcp.server.fastmcp . Context)\n",
        "import mcpace\nserver = mcpace.MCPServer('é', x=mcpace.Context)\n",
    ),
    "attributes of FastMCP": (
        "import fastmcp\nmcp = fastmcp.FastMCP('x')\n@mcp.tool\ndef f(): ...\n",
        "import mcpace.fastmcp\nmcp = mcpace.fastmcp.FastMCP('x')\n@mcp.tool\ndef f(): ...\n",
    ),
    "a module that is not whole": (
        "import mcp.types as types\na, b = types.Tool, types.NoSuchType\n",
        "import mcpace.types\nimport mcp.types as types\na, b = mcpace.types.Tool, types.NoSuchType\n",
    ),
    "a server beside a client of the SDK": (
        "from mcp import ClientSession\nfrom mcp.server.mcpserver import MCPServer\n",
        "from mcp import ClientSession\nfrom mcpace import MCPServer\n",
    ),
}
KEPT = (
    "from mcp.server.lowlevel import Server\nfrom mcp.types import Tool\n",
    "from . import mcp\nfrom .mcp.types import Tool\n",
    "import mcpace\nfrom mcpace.fastmcp import FastMCP\n",
    "from mcp_other import MCPServer\n",
    "text = 'from mcp.server.fastmcp import FastMCP'\n",
    "mcp = object()\nmcp.server.fastmcp.FastMCP\n",
    "from mcp.server.fastmcp import *\n",
)


@pytest.mark.parametrize("case", REWRITTEN)
def test_imports_are_rewritten_and_nothing_else(case: str) -> None:
    before, after = REWRITTEN[case]
    for ending in ("\n", "\r\n"):
        given, wanted = (text.replace("\n", ending).encode() for text in (before, after))
        done = rewrite(given)
        assert done.data.decode() == wanted.decode()
        assert rewrite(done.data).data == done.data


@pytest.mark.parametrize("source", KEPT)
def test_other_code_stays(source: str) -> None:
    done = rewrite(source.encode())
    assert (done.data, done.imports) == (source.encode(), 0)


def test_imports_without_a_counterpart_are_reported_with_their_line() -> None:
    source = "import os\nfrom mcp.types import (\n    Tool,\n    NoSuchType,\n)\nimport mcp.client.sse\n"
    assert [(left.line, left.name) for left in rewrite(source.encode()).left] == [
        (4, "mcp.types.NoSuchType"),
        (6, "mcp.client.sse"),
    ]
    [left] = rewrite(b"from mcp.server.lowlevel import Server\n").left
    assert "mcpace serve" in left.advice


def test_the_advice_for_a_star_import_is_to_name_the_imports() -> None:
    [left] = rewrite(b"from fastmcp import *\n").left
    assert left.advice.startswith("import each name")


@pytest.mark.parametrize(
    "data",
    [
        "# -*- coding: latin-1 -*-\nfrom mcp.types import Tool  # é\n".encode("latin-1"),
        b"\xef\xbb\xbffrom mcp.types import Tool, NoSuchType\n",
        b"x = 1\rfrom mcp.types import Tool\r\n",
        b"from mcp.types import Tool",
        "é = 'ü'; from mcp.types import Tool\n".encode(),
    ],
)
def test_encodings_and_line_ends_stay(data: bytes) -> None:
    done = rewrite(data).data
    assert done != data
    assert done.replace(b"from mcpace.types", b"from mcp.types").replace(b"from mcp.types import Tool\nfrom", b"from")
    if b"NoSuchType" in data:
        assert done == b"\xef\xbb\xbffrom mcp.types import NoSuchType\nfrom mcpace.types import Tool\n"
    else:
        assert done == data.replace(b"mcp.types", b"mcpace.types")


def test_a_file_that_is_no_python_says_where() -> None:
    with pytest.raises(Unreadable, match="line 2"):
        rewrite(b"x = 1\nfrom mcp import (\n")


@pytest.mark.parametrize(
    "data",
    [
        b"# coding: rot13\nfrom mcp.types import Tool\n",
        b"# coding: unicode_escape\nfrom mcp.types import Tool\n",
        b"x = " + b"-" * 200_000 + b"1\n",
        b"if 1:\n pass\n" + b"elif 1:\n pass\n" * 20_000,
    ],
    ids=["an encoding of bytes", "an encoding that is not reversible", "deep operators", "deep branches"],
)
def test_a_file_that_cannot_be_parsed_and_written_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        rewrite(data)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "server.py").write_text(
        "from mcp.server.fastmcp import FastMCP\nfrom mcp.server.sse import SseServerTransport\n"
    )
    (folder / "server.py").chmod(0o755)
    (folder / "broken.py").write_text("def (:\n")
    (folder / "notes.txt").write_text("from mcp.server.fastmcp import FastMCP\n")
    for name in (".venv", "venv", "node_modules"):
        (folder / name).mkdir()
        (folder / name / "pyvenv.cfg").touch()
        (folder / name / "other.py").write_text("from mcp.types import Tool\n")
    outside = tmp_path / "outside.py"
    outside.write_text("from mcp.types import Tool\n")
    (folder / "link.py").symlink_to(outside)
    (folder / "server_link.py").symlink_to("server.py")
    return folder


def test_a_project_is_rewritten_in_place(project: Path) -> None:
    ended = run("migrate", "project", folder=project.parent)
    assert ended.code == UNREACHABLE  # one file could not be parsed
    assert ended.stdout == "project/server.py: 1 import rewritten\n"
    assert "project/server.py:2: mcp.server.sse.SseServerTransport has no counterpart" in ended.stderr
    assert "project/broken.py is left as it is: it cannot be parsed (line 1" in ended.stderr
    assert (project / "server.py").read_text().startswith("from mcpace import MCPServer as FastMCP\n")
    assert (project / "server.py").stat().st_mode & 0o777 == 0o755
    assert (project / "server_link.py").is_symlink()
    assert (project.parent / "outside.py").read_text() == "from mcp.types import Tool\n"
    assert (project / "venv" / "other.py").read_text() == "from mcp.types import Tool\n"
    assert not list(project.glob(".server*"))


def test_check_and_diff_write_nothing(project: Path) -> None:
    (project / "broken.py").unlink()
    before = (project / "server.py").read_bytes()
    checked = run("migrate", "project", "--check", folder=project.parent)
    assert (checked.code, checked.stdout) == (HIT, "project/server.py: 1 import to rewrite\n")
    shown = run("migrate", "project/server.py", "--diff", folder=project.parent)
    assert shown.code == DONE
    assert "-from mcp.server.fastmcp import FastMCP\n+from mcpace import MCPServer as FastMCP\n" in shown.stdout
    assert (project / "server.py").read_bytes() == before
    assert run("migrate", "project", folder=project.parent).code == DONE
    assert run("migrate", "project", "--check", folder=project.parent).code == DONE


def test_the_projects_own_package_of_an_sdks_name_stays(tmp_path: Path) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").touch()
    (tmp_path / "server.py").write_text("from mcp.types import Tool\n")
    assert run("migrate", ".", folder=tmp_path).code == DONE
    assert (tmp_path / "server.py").read_text() == "from mcp.types import Tool\n"


def test_a_path_that_is_not_there_is_a_usage_problem(tmp_path: Path) -> None:
    ended = run("migrate", "nowhere", folder=tmp_path)
    assert (ended.code, ended.stdout) == (USAGE, "")
    assert "there is no file or folder nowhere" in ended.sentence()


def test_a_pipe_is_a_usage_problem(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    ended = run("migrate", "pipe.py", folder=tmp_path)
    assert (ended.code, ended.sentence()) == (USAGE, "pipe.py is neither a file nor a folder")


def test_a_folder_that_cannot_be_listed_is_reported(tmp_path: Path) -> None:
    missing, problems = tmp_path / "closed", list[OSError]()
    missing.mkdir()
    (tmp_path / "a.py").touch()
    found = project_files.python_files(tmp_path, problems.append)
    assert next(found) == tmp_path / "a.py"
    missing.rmdir()  # as root may list a folder of any mode
    assert list(found) == []
    assert [problem.filename for problem in problems] == [str(missing)]


def test_names_of_files_are_printed_without_control_characters(tmp_path: Path) -> None:
    (tmp_path / "a\x1b]0;evil\x07\n.py").write_text("from mcp.types import Tool\n")
    ended = run("migrate", ".", folder=tmp_path)
    assert (ended.code, ended.stdout) == (DONE, "a]0;evil .py: 1 import rewritten\n")


def test_every_counterpart_is_there() -> None:
    missing = [
        target for target in set(COUNTERPARTS.values()) if not hasattr(importlib.import_module(target[0]), target[1])
    ]
    assert missing == []


@pytest.mark.network
def test_every_name_of_an_sdk_exists_in_a_release() -> None:
    names = [*COUNTERPARTS, *ENGINES, *((module, None) for module in WHOLE)]
    names += [(place.partition(":")[0], place.partition(":")[2] or None) for place in ADVICE]
    program = """
import importlib, json, sys
found = []
for module, name in json.load(sys.stdin):
    try:
        there = importlib.import_module(module)
    except ImportError:
        continue
    if name is None or hasattr(there, name):
        found.append([module, name])
json.dump(found, sys.stdout)
"""
    found: set[tuple[str, str | None]] = set()
    for sdk in SDKS:
        command = [str(interpreter(sdk)), "-W", "ignore", "-c", program]
        done = subprocess.run(command, input=json.dumps(names), capture_output=True, text=True, timeout=120, check=True)
        found |= {(module, name) for module, name in json.loads(done.stdout)}
    assert set(names) - found == set()
