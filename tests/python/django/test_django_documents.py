"""Every example of docs/django.md runs, and its table of settings is the code's."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from support.django_project import USER
from support.serve_process import Served

# isort: split
from mcpace import SyncClient
from mcpace.django import MCPServer, conf

PAGE = (Path(__file__).parents[3] / "docs" / "django.md").read_text()
EXAMPLES = re.findall(r"^## (.+?)\n|^```python (\w+)\n(.*?)^```", PAGE, re.M | re.S)
LIMIT_S = 120


def examples(kind: str) -> list[tuple[str, str]]:
    found, heading = [], ""
    for chapter, sort, code in EXAMPLES:
        heading = chapter or heading
        if sort == kind:
            found.append((heading, code))
    return found


@pytest.mark.filterwarnings("ignore:mcpace")
@pytest.mark.parametrize(("heading", "code"), examples("module") + examples("oauth"))
def test_a_module_runs(heading: str, code: str) -> None:
    module = made(code)
    assert isinstance(module.server, MCPServer)
    assert module.server.registry.tools
    for tool in module.server.registry.tools.values():
        assert tool.listed()["description"] or tool.name == "whoami"


@pytest.mark.filterwarnings("ignore:mcpace")
def test_calls_in_this_process_are_as_they_say() -> None:
    selectors = next(code for heading, code in examples("module") if heading == "Selectors")
    names: dict[str, Any] = {"server": made(selectors).server, "user": USER}
    for sort in ("shell", "async"):
        [(_, code)] = examples(sort)
        run = eval(compile(code, sort, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if run is not None:
            asyncio.run(run)
        shown = names.pop("result").structured_content["items"]
        assert {"id": USER.pk, "username": "root"} in shown


def test_the_quickstart_runs_in_a_fresh_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a new user would: ``startproject``, the settings, the module, ``manage.py mcpace``, the client."""
    environment = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
    subprocess.run(
        [sys.executable, "-m", "django", "startproject", "shop", "."],
        cwd=tmp_path, env=environment, check=True, timeout=LIMIT_S,
    )  # fmt: skip
    [(_, settings)] = examples("settings")
    with (tmp_path / "shop" / "settings.py").open("a") as file:
        file.write(settings)
    (tmp_path / "shop" / "mcp.py").write_text(examples("module")[0][1])
    [(_, urls)] = examples("urls")
    (tmp_path / "shop" / "urls.py").write_text(urls)
    command = [sys.executable, "manage.py", "mcpace", "--port", "0"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        served = Served(process)
        served.ready()
        # Once: it is a warning, and no note of the server's as well.
        assert sum("AllowAny lets every caller in" in line for line in served.lines.said) == 1
        [(_, client)] = examples("client")
        exec(client.replace(":8000/", f":{served.port}/"), {"SyncClient": SyncClient})
    finally:
        process.kill()
        process.communicate(timeout=LIMIT_S)
    assert capsys.readouterr().out == "{'ordered': '1 of A-17', 'by': 'nobody'}\n"
    # The URLconf stands too.
    subprocess.run([sys.executable, "manage.py", "check"], cwd=tmp_path, env=environment, check=True, timeout=LIMIT_S)


def test_all_settings_are_told() -> None:
    told = dict(re.findall(r"^\| `([A-Z_]+)` \| (.+?) \|", PAGE, re.M))
    assert set(told) == set(conf.SETTINGS)
    words = {5 << 20: "5 MiB", 1 << 20: "1 MiB"}
    for name, known in conf.SETTINGS.items():
        shown = words.get(known.default) if isinstance(known.default, int) else None
        default = repr(known.default).replace("'", '"')
        assert told[name].strip("`") in (shown, default), name


def made(code: str) -> types.ModuleType:
    module = types.ModuleType("example")
    exec(compile(code, "docs/django.md", "exec"), module.__dict__)
    return module
