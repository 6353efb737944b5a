"""The command ``mcpace layers`` on real releases of each SDK, each in its own environment."""

from __future__ import annotations

import json
import os
import select
import signal
from math import isclose
from pathlib import Path

import pytest

from mcpace.report.model.run import Case, Run
from support.commands import LIMIT_S, Ended, end, run, start_command
from support.layering import DRF, FASTMCP, MCP_1, MCP_2, MCPACE, MCPACE_DJANGO, SERVED, Served

LAYERS = ["direct", "handler", "in-process", "socket"]
QUICK = ("--rounds", 2, "--batch", "5ms", "--warm-up", "0s")
DONE, USAGE, UNREACHABLE, INTERRUPTED = 0, 2, 3, 130


def layers(served: Served, folder: Path, tool: str = "double", arguments: str = '{"n": 21}', *more: object) -> Ended:
    words = ("--tool", tool, "--args", arguments, "--python", served.interpreter(), *QUICK, *more)
    return run("layers", served.place, *words, folder=folder, environment=served.environment)


def measured(served: Served, folder: Path, tool: str = "double") -> Run:
    # Modules print at import: --json has the run on stdout, and nothing else.
    ended = layers(served, folder, tool, '{"n": 21}', "--json")
    assert ended.code == DONE, ended.stderr
    return Run.from_json(ended.stdout)


def by_layer(result: Run) -> dict[str, Case]:
    found = {case.layer.name: case for case in result.cases if case.layer}
    assert list(found) == LAYERS
    return found


@pytest.mark.parametrize("served", SERVED, ids=lambda served: served.name)
def test_each_sdks_layers_are_measured_and_add_up(served: Served, tmp_path: Path) -> None:
    result = measured(served, tmp_path)
    cases = by_layer(result)
    assert not [case.unsupported or case.error for case in cases.values() if case.unsupported or case.error]
    assert {case.subject.sdk for case in result.cases} == {served.sdk}
    assert all(len(case.trials_s) == 2 and case.median_s and case.layer.includes for case in cases.values())  # type: ignore[union-attr]
    direct = cases["direct"].median_s or 0.0
    for case in cases.values():
        assert case.median_s is not None and case.over_direct_s is not None
        assert isclose(case.over_direct_s, case.median_s - direct, abs_tol=1e-12)
    shares = [case.layer.share for case in cases.values() if case.layer and case.layer.share is not None]
    assert len(shares) == 3 and isclose(sum(shares), 1.0)
    assert result.layers is not None and result.layers.served_by and result.layers.python


@pytest.mark.parametrize("served", [MCPACE, MCP_1, MCP_2, FASTMCP], ids=lambda served: served.name)
def test_a_coroutine_function_is_awaited_directly(served: Served, tmp_path: Path) -> None:
    cases = by_layer(measured(served, tmp_path, "double_async"))
    assert all(case.median_s for case in cases.values())


@pytest.mark.parametrize("served", [MCPACE, MCP_1, MCP_2, FASTMCP], ids=lambda served: served.name)
def test_a_tool_that_wants_a_context_has_no_direct_call(served: Served, tmp_path: Path) -> None:
    cases = by_layer(measured(served, tmp_path, "with_context"))
    assert cases["direct"].unsupported and cases["direct"].median_s is None
    assert cases["in-process"].median_s and cases["socket"].median_s
    assert cases["socket"].over_direct_s is None


@pytest.mark.parametrize("served", [MCPACE, MCPACE_DJANGO, MCP_1, MCP_2, FASTMCP, DRF], ids=lambda served: served.name)
def test_what_cannot_be_measured_is_one_sentence(served: Served, tmp_path: Path) -> None:
    ended = layers(served, tmp_path, "fails")
    assert ended.code == UNREACHABLE
    assert "ValueError: there is no invoice 21" in ended.sentence(), ended.stderr
    ended = layers(served, tmp_path, "double", '{"m": 1}')
    assert ended.code == USAGE
    assert "does not take these arguments" in ended.sentence()
    ended = layers(served, tmp_path, "doubel")
    assert ended.code == USAGE
    assert "no tool 'doubel'" in ended.sentence() and "double" in ended.sentence()


def test_what_the_user_named_wrongly_is_a_usage_problem(tmp_path: Path) -> None:
    call = ("--tool", "double", "--args", '{"n": 1}')
    place = MCPACE.place
    for words, said in (
        ((place,), "no tool was named; there are double"),
        ((place.replace(":mcp", ":nothing"), *call), "has no 'nothing'"),
        (("no_such_module:mcp", *call), "there is no module 'no_such_module'"),
        (("nothing.py:mcp", *call), "there is no file nothing.py"),
        (("http://127.0.0.1/mcp", *call), "write MODULE:SERVER"),
        (("json:JSONDecoder", *call), "is no server whose layers are known"),
        ((place, *call, "--python", tmp_path / "python"), "there is no program"),
    ):
        ended = run("layers", *words, folder=tmp_path)
        assert (ended.code, said in ended.sentence()) == (USAGE, True), ended.stderr


def test_a_module_that_cannot_be_imported_is_told_by_its_exception(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('the database is away')\n")
    ended = run("layers", "broken:mcp", "--tool", "x", folder=tmp_path)
    assert ended.code == UNREACHABLE
    assert ended.sentence() == "importing broken raised RuntimeError: the database is away"


UNREADY = {"DJANGO_SETTINGS_MODULE": "project_of_somebody.settings"}


def test_another_projects_django_settings_keep_no_server_from_being_measured(tmp_path: Path) -> None:
    words = ("--tool", "double", "--args", '{"n": 21}', "--json", *QUICK)
    ended = run("layers", MCPACE.place, *words, folder=tmp_path, environment=UNREADY)
    assert ended.code == DONE, ended.stderr
    assert by_layer(Run.from_json(ended.stdout))["handler"].median_s


def test_a_server_that_wants_django_is_told_what_its_set_up_failed_of(tmp_path: Path) -> None:
    environment = {**MCPACE_DJANGO.environment, **UNREADY}
    ended = run("layers", MCPACE_DJANGO.place, "--tool", "double", folder=tmp_path, environment=environment)
    assert ended.code == UNREACHABLE
    assert "Django could not be set up with DJANGO_SETTINGS_MODULE=project_of_somebody.settings" in ended.sentence()
    assert "No module named 'project_of_somebody'" in ended.sentence()


def test_a_worker_that_dies_in_a_call_is_told(tmp_path: Path) -> None:
    source = "import os\nfrom mcpace import MCPServer\nmcp = MCPServer('m')\n"
    (tmp_path / "dying.py").write_text(f"{source}@mcp.tool()\ndef die() -> None:\n    os._exit(7)\n")
    ended = run("layers", "dying:mcp", "--tool", "die", folder=tmp_path)
    assert ended.code == UNREACHABLE
    assert "exited with code 7" in ended.sentence()


def test_a_worker_that_dies_half_way_leaves_what_was_measured(tmp_path: Path) -> None:
    source = (
        "import os\nfrom mcpace import MCPServer\nmcp = MCPServer('m')\ncalls = 0\n"
        "@mcp.tool()\ndef tire() -> int:\n    global calls\n    calls += 1\n"
        "    if calls > 2000:\n        os._exit(7)\n    return calls\n"
    )
    (tmp_path / "tiring.py").write_text(source)
    words = ("--tool", "tire", "--json", "--batch", "20us", "--warm-up", "0s", "--rounds", 1000)
    ended = run("layers", "tiring:mcp", *words, folder=tmp_path)
    assert ended.code == DONE, ended.stderr
    cases = {case.layer.name: case for case in Run.from_json(ended.stdout).cases if case.layer}
    assert "exited with code 7" in str(cases["direct"].error) and cases["direct"].trials_s


def test_a_tool_that_begins_to_fail_costs_its_layers_no_more_than_that(tmp_path: Path) -> None:
    # Only where it is imported first: the server behind the socket is another process, whose tool never tires.
    source = (
        "import pathlib\nfrom mcpace import MCPServer\nmcp = MCPServer('m')\ncalls = 0\n"
        "mark = pathlib.Path('imported')\nis_first = not mark.exists()\nmark.touch()\n"
        "@mcp.tool()\ndef tire() -> int:\n    global calls\n    calls += 1\n"
        "    if is_first and calls > 2000:\n        raise ValueError('tired')\n    return calls\n"
    )
    (tmp_path / "tiring.py").write_text(source)
    ended = run("layers", "tiring:mcp", "--tool", "tire", "--json", "--batch", "20ms", folder=tmp_path)
    assert ended.code == DONE, ended.stderr
    errors = {case.layer.name: case.error for case in Run.from_json(ended.stdout).cases if case.layer}
    assert "tired" in str(errors["direct"]) and errors["socket"] is None, errors


def test_the_report_shows_each_layer_in_both_views(tmp_path: Path) -> None:
    ended = layers(MCPACE, tmp_path, "double", '{"n": 21}', "--html", "page.html", "--out", "run.json")
    assert ended.code == DONE, ended.stderr
    page = (tmp_path / "page.html").read_text()
    for name in LAYERS:
        assert f"\n  {name} " in ended.stdout
        assert f'{{"name":"{name}","meaning":' in page
    assert "A call of double takes" in ended.stdout and '"layers":{"title":"double at ' in page
    shown = run("report", "run.json", folder=tmp_path)
    assert shown.stdout == ended.stdout


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    source = (
        "import pathlib, time\nfrom mcpace import MCPServer\nmcp = MCPServer('m')\ncalls = 0\n"
        "@mcp.tool()\ndef stall() -> int:\n    global calls\n    calls += 1\n"
        "    if calls == 5:\n        pathlib.Path('reached').write_text('x')\n        time.sleep(60)\n"
        "    return calls\n"
    )
    os.mkfifo(tmp_path / "reached")
    reached = os.open(tmp_path / "reached", os.O_RDONLY | os.O_NONBLOCK)
    (tmp_path / "stalling.py").write_text(source)
    words = ("layers", "stalling:mcp", "--tool", "stall", "--rounds", 2, "--warm-up", "0s", "--batch", "1us")
    with start_command(*words, folder=tmp_path) as process:
        assert select.select([reached], [], [], LIMIT_S)[0]
        process.send_signal(signal.SIGINT)
        ended = end(process)
    os.close(reached)
    assert ended.code == INTERRUPTED
    [saved] = tmp_path.glob("mcpace-layers-*.partial.json")
    so_far = json.loads(saved.read_text())
    assert so_far["partial"] is True and [case["layer"]["name"] for case in so_far["cases"]] == LAYERS
