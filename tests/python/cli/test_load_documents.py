"""Every example of docs/load.md runs, with the server of the page, but for a shorter time."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import COMMAND, run
from support.otlp_collector import stand_in_collector
from support.serve_process import serving

PAGE = (Path(__file__).parents[3] / "docs" / "load.md").read_text()
BLOCKS = re.findall(r"^```console\n(.*?)^```", PAGE, re.M | re.S)
COMMANDS = [line.removeprefix("$ ") for block in BLOCKS for line in block.splitlines()]
SERVER = """
    from mcpace import MCPServer

    server = MCPServer("page")

    @server.tool()
    def echo(text: str) -> str:
        return text

    @server.tool()
    def greet(name: str) -> str:
        return f"Hello, {name}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Yields a folder with all files of the page, and the server's address."""
    place = tmp_path_factory.mktemp("page")
    (place / "people.txt").write_text("Ada\nGrace\n")
    [scenario] = re.findall(r"^```toml\n(.*?)^```", PAGE, re.M | re.S)
    recorded = run(
        "measure", "profile:simple", "--tool", "echo", "--args", '{"text": "hi"}', "--trials", 1,
        "--recordings", place / "recordings", folder=place,
    )  # fmt: skip
    assert recorded.code == 0, recorded.stderr
    shutil.copy(place / "recordings" / "measure-profile-simple.jsonl.zst", place / "recording.jsonl.zst")
    with serving(place, "server.py", "--port", "0", source=SERVER) as served:
        served.ready()
        address = f"127.0.0.1:{served.port}"
        (place / "scenario.toml").write_text(shortened(scenario).replace("127.0.0.1:8000", address))
        yield place, address


def shortened(text: str) -> str:
    """Replaces durations of whole seconds by half a second."""
    return re.sub(r"\b\d+s(?=[:\s\"]|$)", "500ms", text)


def test_the_page_has_examples() -> None:
    assert len(COMMANDS) > 12
    assert all(command.startswith("mcpace load ") for command in COMMANDS)


@pytest.mark.parametrize("number", range(len(COMMANDS)))
def test_an_example_runs(number: int, folder: tuple[Path, str]) -> None:
    place, address = folder
    with stand_in_collector() as (collector, _):
        command = shortened(COMMANDS[number]).replace("127.0.0.1:8000", address)
        command = command.replace("http://127.0.0.1:4318/v1/metrics", collector)
        words = shlex.split(command.replace("stdio:mcpace", f"stdio:{COMMAND[0]}"))[1:]
        if not {"--duration", "--stages", "--scenario"} & set(words):
            words += ["--duration", "500ms"]
        ended = run(*words, "--warm-up", "0s", folder=place)
    assert ended.code == 0, f"{command}: {ended.stderr}"
    assert ", no errors." in " ".join(ended.stdout.split()), ended.stdout
