"""``mcpace check`` on configurations with real servers, broken ones and hanging ones; and a gate's limits on tokens."""

from __future__ import annotations

import json
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mcpace import _core
from mcpace.lab.check.closer_look import look_closer
from mcpace.lab.check.code_caches import NO_BYTECODE, code_cache
from mcpace.lab.check.import_times import STANDARD_LIBRARY, parse_import_times
from mcpace.lab.check.install_command import install_command
from mcpace.lab.check.runner_stages import parse_stages
from mcpace.lab.check.server_starts import observe_starts, start_servers
from mcpace.lab.check.stamped_output import StampedOutput
from mcpace.lab.check.start_schedule import shortest_schedule_s
from mcpace.lab.check.start_watch import ProgramStart, StartWatch
from mcpace.lab.paths import find_uv
from mcpace.lab.processes.runners import runner_name
from mcpace.lab.processes.starters import start_in_folder
from mcpace.lab.targets import Target
from mcpace.report.model.run import Run
from mcpace.system.processors import usable_cores
from support.commands import LIMIT_S, end, run, start_command

SERVER = '''
import decimal, sys
from mcpace import MCPServer
from mcpace.types import ToolAnnotations

mcp = MCPServer("words", instructions="Counts words.")

@mcp.tool(annotations=ToolAnnotations(readOnlyHint=True))
def today() -> str:
    """Returns the name of the day."""
    return "Thursday"

@mcp.prompt()
def shorten(text: str) -> str:
    """Asks for a shorter text."""
    return f"Shorten: {text}"

@mcp.tool()
def count(text: str) -> int:
    """Counts the words of a text."""
    return len(text.split())

print("PLANTED on stderr", file=sys.stderr)
mcp.run("stdio")
'''
HANGS = "import sys; print('starting', flush=True); sys.stdin.read(); import time; time.sleep(600)"
FAILS = "import sys; print('listening soon', flush=True); sys.exit('the key PLANTED_KEY is missing')"


def configuration(folder: Path, servers: dict[str, Any]) -> Path:
    (folder / "server.py").write_text(SERVER)
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def own_server(folder: Path, *before: str) -> dict[str, Any]:
    words = [*before, sys.executable, str(folder / "server.py")]
    return {"command": words[0], "args": words[1:]}


def checked(folder: Path, servers: dict[str, Any], *options: str) -> tuple[int, Run, str]:
    out = folder / "run.json"
    ended = run("check", configuration(folder, servers), "--out", out, *options, folder=folder)
    assert "Traceback" not in ended.stderr and "PLANTED on" not in ended.stderr
    return ended.code, Run.load(out), ended.stdout


def test_each_server_has_its_start_its_tokens_and_parts_that_add_up(tmp_path: Path) -> None:
    servers = {
        "plain": own_server(tmp_path),
        # A shell that stays the parent of the server, as npx and uvx do.
        "behind": {"command": "sh", "args": ["-c", f"sleep 0.3; {sys.executable} {tmp_path}/server.py; exit 0"]},
        "off": {"command": "x", "disabled": True},
    }
    code, result, shown = checked(tmp_path, servers, "--rounds", "2")
    assert (code, result.kind, result.partial) == (0, "check", False)
    assert result.check is not None and len(result.check.together_s) == 2
    assert result.check.switched_off == ["off"]
    cases = {(case.target, case.operation): case for case in result.cases}
    for name in ("plain", "behind"):
        start = cases[name, "connect"].start
        assert start is not None and len(start.starts) == 4
        for one in start.starts:
            assert sum(part.seconds for part in one.parts) == pytest.approx(one.total_s, rel=1e-6)
            assert all(part.seconds >= 0 for part in one.parts)
        assert start.program.startswith("python") and (start.rss_bytes or 0) > 5_000_000
        assert (start.processor_s or 0) > 0.01
        assert cases[name, "list"].listing_tools == 2
        assert cases[name, "list"].listing_tokens == sum(tool.tokens for tool in cases[name, "list"].tools or [])
        assert [tool.name for tool in cases[name, "list"].tools or []] == ["today", "count"]
        other = cases[name, "list"].context_tokens
        assert other is not None and (other.instructions, other.resources) == (3, 0) and other.prompts > 10
        call = cases[name, "call"]
        assert (call.tool, call.result_tokens, call.error) == ("today", 1, None)
        # The longest import of this server is known: its own package, pydantic or the standard library.
        assert start.imports[0].name in ("mcpace", "pydantic", "pydantic_core", STANDARD_LIBRARY)
    behind, plain = cases["behind", "connect"].start, cases["plain", "connect"].start
    assert behind is not None and plain is not None
    assert (plain.runner, behind.runner) == ("", "shell")
    for one in behind.starts:
        assert next(part.seconds for part in one.parts if part.code == "runner") >= 0.25
    assert not [one for one in plain.starts if any(part.code == "runner" for part in one.parts)]
    assert "2 servers: a new session waits" in shown and "tokens of each context" in " ".join(shown.split())


def test_servers_that_fail_are_results_in_their_own_words(tmp_path: Path) -> None:
    servers = {
        "works": own_server(tmp_path),
        "fails": {"command": sys.executable, "args": ["-c", FAILS]},
        "hangs": {"command": sys.executable, "args": ["-c", hanging_program(tmp_path)]},
        "absent": {"command": "no-such-program-of-mcpace"},
        "unset": {"command": "x", "env": {"KEY": "${NO_SUCH_VARIABLE_OF_MCPACE}"}},
        "nowhere": {"url": "http://127.0.0.1:1/mcp"},
        "neither": {"type": "stdio"},
        "unusable": {"url": "http://exa mple.com/"},
    }
    code, result, shown = checked(tmp_path, servers, "--rounds", "1", "--timeout", "4s")
    assert code == 3
    connects = {case.target: case for case in result.cases if case.operation == "connect"}
    assert set(connects) == set(servers)
    assert connects["works"].error is None and connects["works"].trials_s
    says = {
        "fails": "stderr ended with: the key PLANTED_KEY is missing",
        "hangs": "connect took longer than its limit of 4",
        "absent": 'could not start "no-such-program-of-mcpace"',
        "unset": "env.KEY needs the environment variable NO_SUCH_VARIABLE_OF_MCPACE, which is not set",
        "nowhere": "onnect",
        "neither": "neither url nor command",
        "unusable": "is not a usable URL",
    }
    for name, words in says.items():
        assert not connects[name].trials_s
        assert words in (connects[name].error or ""), connects[name].error
    assert "printed text on stdout before the protocol" in (connects["fails"].error or "")
    lines = [line.split()[0] for line in shown.splitlines() if line.startswith("  ") and " failed " in line]
    assert sorted(lines) == sorted(says), "failed servers come first"
    assert not processes_of(hanging_program(tmp_path))


@pytest.mark.parametrize("is_wrapped", [False, True])
@pytest.mark.parametrize("more", [{}, {"cwd": "."}])
def test_a_server_that_ends_is_named_by_its_own_program(more: dict[str, str], is_wrapped: bool, tmp_path: Path) -> None:
    """The flight recorder's shell, and the program that changes the folder, are not named."""
    entry = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no key')"], **more}
    file = configuration(tmp_path, {"keyless": entry})
    if is_wrapped:
        wrapped = run("wrap", file, folder=tmp_path, environment={"XDG_STATE_HOME": str(tmp_path / "state")})
        assert wrapped.code == 0 and json.loads(file.read_text())["mcpServers"]["keyless"]["command"] == "/bin/sh"
    ended = run("check", file, "--rounds", "1", "--out", "run.json", folder=tmp_path)
    assert ended.code == 3
    connect = Run.load(tmp_path / "run.json").cases[0]
    ended_words = f'the server process "{Path(sys.executable).name}" ended (exit code 1)'
    assert (connect.error or "").startswith(ended_words)
    assert [words.startswith(f"connect: {ended_words}") for words in connect.failures] == [True]


def test_a_program_whose_stderr_is_redirected_is_named_by_itself(tmp_path: Path) -> None:
    words = start_in_folder((sys.executable, "-c", "raise SystemExit(3)"), tmp_path)
    with StampedOutput() as output, StartWatch() as watch:
        target = Target(name="keyless", command=output.command(words))
        [_], [failure] = start_servers([target], 1, LIMIT_S, watch)
    assert failure == f'the server process "{Path(sys.executable).name}" ended (exit code 3)'


@pytest.mark.parametrize("others", [1, 0])
def test_a_server_that_hangs_is_started_again_only_where_others_may_have_slowed_it(others: int, tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = f"open({str(started)!r}, 'a').write('x'); {hanging_program(tmp_path)}"
    servers = {"hangs": {"command": sys.executable, "args": ["-c", program]}}
    servers |= {"works": own_server(tmp_path)} if others else {}
    code, result, _ = checked(tmp_path, servers, "--rounds", "1", "--timeout", "8s")
    assert (code, len(started.read_text())) == (3, 1 if others else 2)
    [error] = [case.error for case in result.cases if (case.target, case.operation) == ("hangs", "connect")]
    assert "connect took longer than its limit of 8" in (error or "")


FORKS = """
import os, subprocess, sys
print("forking now", file=sys.stderr)
if os.fork():
    os._exit(0)
if "leaves" in sys.argv:
    os.setsid()
if "closes" in sys.argv:
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
import time
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes that are left behind in /proc")
def test_a_server_that_forks_and_exits_is_named_and_leaves_no_process(tmp_path: Path) -> None:
    program = f"{FORKS}  # {tmp_path}"
    # Its child has ended before it, and it exits with 0: it forked, and left nothing.
    ends = f"import os; os.fork() or os._exit(0); os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)  # {tmp_path}"
    servers = {
        "stays in its group": [program],
        "closes its pipes": [program, "closes"],
        "leaves its group": [program, "leaves", "closes"],
        "keeps pipes": [program, "leaves"],
        "just ends": [ends],
    }
    entries = {name: {"command": sys.executable, "args": ["-c", *words]} for name, words in servers.items()}
    code, result, shown = checked(tmp_path, entries, "--rounds", "1", "--timeout", "4s")
    assert (code, "None of 5 servers could be started." in shown) == (3, True)
    errors = {case.target: case.error or "" for case in result.cases if case.operation == "connect"}
    name = Path(sys.executable).name
    assert errors.pop("just ends") == f'the server process "{name}" ended (exit code 0)'
    for target, error in errors.items():
        assert error.startswith(f'the program "{name}" forked and exited: its process ended (exit code 0)'), target
        assert "stderr ended with" not in error or error.endswith("; its stderr ended with: forking now")
    assert "forking now" in errors["closes its pipes"]
    assert not processes_of(program)


@pytest.mark.skipif(sys.platform != "linux", reason="sees programs in /proc")
def test_a_python_that_keeps_no_bytecode_is_tried_with_it(tmp_path: Path) -> None:
    """The server imports a module that takes long to compile, and short to run."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", folder], check=True)
    large = "\n".join(f"def f{number}(a, b):\n    return [a + {number}, b]" for number in range(30_000))
    servers: dict[str, Any] = {}
    for name, value in (("keeps none", "1"), ("keeps it", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "large.py").write_text(large)
        program = f"import sys; sys.path += [{str(tmp_path / name)!r}, *{sys.path!r}]\nimport large\n{SERVER}"
        words = {"command": str(folder / "bin" / "python"), "args": ["-c", program]}
        servers[name] = {**words, "env": {NO_BYTECODE: value}}
    code, result, shown = checked(tmp_path, servers, "--rounds", "1")
    assert code == 0, shown
    starts = {case.target: case.start for case in result.cases if case.operation == "connect"}
    none, own = starts["keeps none"], starts["keeps it"]
    assert none is not None and own is not None and not own.tried
    [tried] = none.tried
    assert (tried.code, tried.environment, len(tried.seconds)) == ("cached-code", {NO_BYTECODE: ""}, 1)
    alone = statistics.median(none.totals_s(together=False))
    assert tried.seconds[0] < 0.7 * alone, (tried.seconds, alone)
    assert "Tried: compiled code that the interpreter keeps" in shown and f'"env": {{"{NO_BYTECODE}": ""}}' in shown
    assert result.check is not None and result.check.advised is not None
    assert not (tmp_path / "keeps none" / "__pycache__").exists()


def test_a_package_whose_script_fails_has_the_output_of_the_script(tmp_path: Path) -> None:
    """npm hides the output of scripts, unless it is asked for it."""
    npx = tmp_path / "npx"
    npx.write_text('#!/bin/sh\n[ "$npm_config_foreground_scripts" ] && echo "no browser to download" >&2\nexit 1\n')
    npx.chmod(0o755)
    code, result, _ = checked(tmp_path, {"silent": {"command": str(npx), "args": ["-y", "x"]}}, "--rounds", "1")
    assert code == 3
    error = result.cases[0].error
    assert error == 'the server process "npx" ended (exit code 1); its stderr ended with: no browser to download'


def test_a_package_that_npx_has_only_in_part_is_named_with_its_folder(tmp_path: Path) -> None:
    folder = "/home/u/.npm/_npx/e54cca0e"
    says = f"Error [ERR_MODULE_NOT_FOUND]: Cannot find module '{folder}/node_modules/{'x' * 300}/index.mjs'"
    entry = {"command": sys.executable, "args": ["-c", f"import sys; sys.exit({says!r})"]}
    _, _, shown = checked(tmp_path, {"in part": entry}, "--rounds", "1")
    assert f"remove {folder}, and npx installs it anew" in " ".join(shown.split())


def test_code_caches_are_tried_only_where_the_interpreter_would_keep_no_code(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    python = ProgramStart(None, "/usr/bin/python3.12", (str(tmp_path / "bin" / "python"), "server.py"), "")
    found = code_cache(python, {NO_BYTECODE: "1"}, tmp_path)
    assert found is not None and found.advised == {NO_BYTECODE: ""}
    assert found.tried == {NO_BYTECODE: "", "PYTHONPYCACHEPREFIX": str(tmp_path / "python")}
    assert code_cache(python, {NO_BYTECODE: ""}, tmp_path) is None
    absent = ProgramStart(None, python.path, ("/no/such/bin/python",), "")
    assert code_cache(absent, {NO_BYTECODE: "1"}, tmp_path) is None, "its environment can't be written"
    for version, keeps in (("v22.1.0", True), ("v24.11.1", True), ("v22.0.9", False), ("v20.20.2", False), ("", False)):
        node = tmp_path / f"of-{version}" / "node"
        node.parent.mkdir()
        node.write_text(f"#!/bin/sh\necho {version}\n")
        node.chmod(0o755)
        program = ProgramStart(None, str(node), ("node", "server.js"), "npx")
        assert (code_cache(program, {}, tmp_path) is not None) is keeps, version
        assert code_cache(program, {"NODE_COMPILE_CACHE": "/x"}, tmp_path) is None


def test_an_interrupt_ends_servers_that_still_start(tmp_path: Path) -> None:
    program = hanging_program(tmp_path)
    path = configuration(tmp_path, {"hangs": {"command": sys.executable, "args": ["-c", program]}})
    with start_command("check", path, "--timeout", "10m", folder=tmp_path) as process:
        until = time.monotonic() + LIMIT_S
        while not processes_of(program):
            assert process.poll() is None and time.monotonic() < until, "the server was not started"
            time.sleep(0.02)  # the start of a grandchild is no event
        process.send_signal(signal.SIGINT)
        ended = end(process)
    assert (ended.code, ended.stdout.startswith("Interrupted")) == (130, True)
    assert not processes_of(program)


def hanging_program(folder: Path) -> str:
    """A program of this test alone, since tests run at the same time."""
    return f"{HANGS}  # {folder}"


def processes_of(program: str) -> list[Path]:
    return [process for process in Path("/proc").iterdir() if program in _command_of(process)]


def _command_of(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def test_a_configuration_with_failures_only_says_so(tmp_path: Path) -> None:
    code, _, shown = checked(tmp_path, {"absent": {"command": "no-such-program-of-mcpace"}}, "--rounds", "1")
    assert (code, shown.splitlines()[0]) == (3, "None of 1 server could be started.")


@pytest.mark.parametrize(
    ("content", "says"),
    [("{broken", "is not JSON"), ("{}", 'has no object "mcpServers" or "servers"'), ('{"servers": {}}', "no server")],
)
def test_a_file_that_is_no_configuration_is_a_mistake_of_use(content: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(content)
    ended = run("check", path, folder=tmp_path)
    assert ended.code == 2 and says in ended.sentence()


def test_a_saved_check_is_read_by_report_compare_and_gate(tmp_path: Path) -> None:
    code, result, _ = checked(tmp_path, {"words": own_server(tmp_path)}, "--rounds", "2", "--waterfall")
    assert code == 0
    shown = run("report", "run.json", "--html", "page.html", folder=tmp_path)
    assert shown.code == 0 and "Starts, one by one" in shown.stdout and "Largest tools" in shown.stdout
    assert run("compare", "run.json", "run.json", folder=tmp_path).code == 0
    (listing,) = [case for case in result.cases if case.operation == "list"]
    value = listing.listing_tokens or 0
    for limit, expected in ((value, 0), (value - 1, 1)):
        ended = run("gate", "run.json", "--tokens", limit, folder=tmp_path)
        assert ended.code == expected
        assert f"take {value} tokens, {'above' if expected else 'within'} the limit of {limit}" in ended.stdout


def test_a_gate_holds_a_live_server_against_limits_of_tokens(tmp_path: Path) -> None:
    configuration(tmp_path, {})
    target = f"stdio:{sys.executable} {tmp_path}/server.py"
    good = run("gate", target, "--tool", "today", "--tokens", 4000, "--max-result-tokens", 1, folder=tmp_path)
    assert good.code == 0, good.stdout
    words = ("gate", target, "--tool", "count", "--args", '{"text": "a b"}', "--max-result-tokens", 1)
    assert run(*words, folder=tmp_path).code == 0
    bad = run("gate", target, "--tokens", 10, "--markdown", "summary.md", folder=tmp_path)
    assert bad.code == 1 and "above the limit of 10" in bad.stdout
    assert "More tokens than the limit allows" in (tmp_path / "summary.md").read_text()
    none = run("gate", target, "--max-result-tokens", 10, "--tool", "absent", folder=tmp_path)
    assert none.code == 2
    assert "either --base" in run("gate", target, folder=tmp_path).sentence()


def test_the_names_of_package_runners() -> None:
    for path, words, name in (
        ("/usr/bin/node", ("node", "/usr/bin/npx", "-y", "x"), "npx"),
        ("/usr/bin/node", ("npm exec @scope/x",), "npx"),
        ("/usr/bin/node", ("npm start",), "npm"),
        ("/usr/bin/node", ("node", "/usr/bin/npm", "exec", "x"), "npx"),
        ("/usr/bin/node", ("node", "/usr/lib/npm-cli.js", "run", "exec"), "npm"),
        ("npm.cmd", ("npm.cmd", "x", "pack"), "npx"),
        ("uvx.exe", ("uvx.exe", "pack"), "uvx"),
        ("/usr/bin/uv", ("uv", "tool", "uvx", "x"), "uv"),
        ("/usr/bin/dash", ("sh", "-c", "x"), "shell"),
        ("/usr/bin/env", ("env", "-C", "/", "x"), "shell"),
        ("/usr/bin/python3.12", ("python", "server.py"), ""),
        ("/usr/bin/node", ("node", "/x/server.js", "npx"), ""),
    ):
        assert runner_name(path, words) == name


def test_the_command_that_installs_a_package_has_no_secret() -> None:
    program = ProgramStart(1, "/usr/bin/node", ("node", "x"), "npx")
    for command, install in (
        (("npx", "-y", "@scope/server@1.2", "--flag", "x"), "npm install --global @scope/server@1.2"),
        (("npx", "-y", "--package", "pack", "program"), "npm install --global pack"),
        (("uvx", "--from", "git+https://me:PLANTED@example.com/x", "x"), "uv tool install git+https://example.com/x"),
        (("uv", "tool", "run", "mcp-server-time"), "uv tool install mcp-server-time"),
        (("npx", "-y", "server", "-p", "8080"), "npm install --global server"),
        (("uvx", "-p", "3.12", "server"), ""),
        (("uv", "run", "--directory", "folder", "server.py"), ""),
        (("docker", "run", "image"), ""),
        (("sh", "-c", "x"), ""),
    ):
        assert install_command(command, program) == install


def test_import_times_are_those_of_the_process_with_the_longest(tmp_path: Path) -> None:
    header = b"import time: self [us] | cumulative | imported package\n"
    short = header + b"import time:  10 |  10 | site\nimport time:  5 |  5 | json\n"
    long = header + (
        b"import time:  700 |  700 |   encodings\nimport time:  300 | 1000 | site\nnoise\n"
        b"import time:  2000 |  2000 |   mcp.types\nimport time:  1000 |  3000 | mcp\nimport time:  500 |  500 | json\n"
    )
    found = parse_import_times(short + long + short)
    assert found is not None and found.interpreter_s == pytest.approx(0.001)
    assert [(one.name, one.seconds) for one in found.packages] == [("mcp", 0.003), (STANDARD_LIBRARY, 0.0005)]
    assert parse_import_times(b"no import times") is None
    configuration(tmp_path, {})
    real = look_closer(Target("words", command=(sys.executable, str(tmp_path / "server.py"))), 60).imports
    assert real is not None and 0 < real.imports_s < 60 and "pydantic" in {one.name for one in real.packages}
    assert look_closer(Target("x", command=("sh", "-c", "exit 1")), 10).imports is None
    assert look_closer(Target("x", command=("no-such-program-of-mcpace",)), 10).imports is None


def test_output_is_stamped_as_it_comes_and_never_stops_a_program() -> None:
    with StampedOutput() as output:
        many = "i=0; while [ $i -lt 20000 ]; do echo xxxxxxxxxx >&2; i=$((i+1)); done"
        before = time.monotonic_ns()
        command = output.command(("sh", "-c", f"echo first >&2; {many}; echo last >&2"))
        subprocess.run(command, check=True, timeout=LIMIT_S)
        lines = output.lines()
    assert (lines[0][1], lines[-1][1], len(lines)) == (b"first", b"last", 20_002)
    stamps = [at for at, _ in lines]
    assert before < stamps[0] and stamps == sorted(stamps) and stamps[-1] > stamps[0]


def test_the_stages_of_package_runners() -> None:
    def stages(*lines: str) -> dict[str, float]:
        stamped = [(int(float(line.split(" ", 1)[0]) * 1e9), line.split(" ", 1)[1].encode()) for line in lines]
        return {code: round(seconds, 3) for code, seconds in parse_stages(stamped).items()}

    registry = "npm http fetch GET 200 https://registry.npmjs.org"
    warm = ("1 npm timing npm:load Completed in 227ms", f"1.4 {registry}/x 403ms (cache updated)")
    assert stages(*warm, "3 Server running") == {"resolve": 0.4}
    cold = (
        *warm,
        "2 npm timing idealTree Completed in 286ms",
        f"2.5 {registry}/x/-/x-1.0.0.tgz 403ms (cache miss)",
        "5 npm timing reify:unpack Completed in 1ms",
        "5.25 npm timing reify Completed in 3000ms",
    )
    assert stages(*cold) == {"resolve": 1.0, "fetch": 3.0, "install": 0.25}
    uv = ("1 DEBUG Solving with installed Python version: 3.11.7", "2 DEBUG Tried 31 versions: x")
    assert stages(*uv) == {"resolve": 1.0}
    assert stages(*uv, "4 Installed 31 packages in 250ms") == {"resolve": 1.0, "fetch": 1.75, "install": 0.25}
    assert stages(*uv, "4 Installed 1 package in 1.50s") == {"resolve": 1.0, "fetch": 0.5, "install": 1.5}
    assert stages("1 a server's own words") == {}


def test_the_shortest_schedule_of_starts() -> None:
    assert shortest_schedule_s([3.0, 1.0, 1.0, 1.0], 2) == 3.0
    assert shortest_schedule_s([1.0, 1.0, 3.0], 2) == 4.0
    assert shortest_schedule_s([1.0, 2.0], 8) == 2.0


def test_servers_that_disturb_each_other_are_started_in_turns(tmp_path: Path) -> None:
    """Each server takes 0.2 s alone, and 1.5 s where more than as many as there are processors start."""
    at_once = len(usable_cores())
    crowd = (
        "import os, sys, time\n"
        f"folder = {str(tmp_path / 'starting')!r}\n"
        "os.makedirs(folder, exist_ok=True)\n"
        "mine = os.path.join(folder, str(os.getpid()))\n"
        "open(mine, 'w').close()\n"
        "time.sleep(0.2)\n"
        f"time.sleep(1.5 if len(os.listdir(folder)) > {at_once} else 0)\n"
        "os.remove(mine)\n"
    )
    number = at_once + 1
    servers = {f"s{one}": own_server(tmp_path) for one in range(number)}
    path = configuration(tmp_path, servers)
    (tmp_path / "server.py").write_text(crowd + SERVER)
    ended = run("check", path, "--rounds", "1", "--calls", "1", "--out", tmp_path / "run.json", folder=tmp_path)
    result = Run.load(tmp_path / "run.json")
    assert result.check is not None and result.check.limited is not None
    limited = result.check.limited
    assert (limited.at_once, len(limited.ready_s)) == (at_once, number)
    assert limited.ready_s == sorted(limited.ready_s)
    if limited.ready_s[-1] < 0.9 * result.check.together_s[0]:
        assert f"Tried: {at_once} servers at a time" in " ".join(ended.stdout.split())


@pytest.mark.network
@pytest.mark.skipif(shutil.which("npx") is None, reason="needs Node.js")
def test_a_server_of_npm_shows_the_time_of_its_package_runner(tmp_path: Path) -> None:
    package = "@modelcontextprotocol/server-memory@2026.8.31"
    code, result, shown = checked(tmp_path, {"memory": {"command": "npx", "args": ["-y", package]}}, "--rounds", "1")
    assert code == 0, shown
    start = next(case.start for case in result.cases if case.operation == "connect")
    assert start is not None and (start.runner, start.program) == ("npx", "node")
    parts = {part.code: part.seconds for part in start.starts[-1].parts}
    assert parts["runner"] + parts["resolve"] > 0.05 and parts["set-up"] > 0.02
    assert len(start.tried) == 1, (start, shown)
    (tried,) = start.tried
    assert "mcp-server-memory" in tried.command and tried.install == f"npm install --global {package}"
    assert len(tried.seconds) == 1 and "Tried: the installed program" in shown
    assert parts["resolve"] > 0


@pytest.mark.network
@pytest.mark.skipif(shutil.which("npx") is None, reason="needs Node.js")
def test_the_parts_of_real_starts_add_up_to_the_time_on_a_clock_outside() -> None:
    for command in (
        ("npx", "-y", "@modelcontextprotocol/server-memory@2026.8.31"),
        ("npx", "-y", "@modelcontextprotocol/server-everything@2026.8.31"),
        (str(find_uv()), "tool", "run", "mcp-server-time@2026.10.19"),
        (str(find_uv()), "tool", "run", "mcp-server-git@2026.10.19"),
    ):
        look = look_closer(Target("x", command=command), LIMIT_S)
        client = _core.Client(list(command), limit_s=LIMIT_S)
        with StartWatch() as watch:
            before = time.perf_counter()
            client.connect()
            client.list_tools()
            outside_s = time.perf_counter() - before
        client.disconnect()
        (start,) = observe_starts(client.recording(), watch)
        parts = {part.code: part.seconds for part in start.parts(look.imports, look.stages)}
        assert sum(parts.values()) == pytest.approx(outside_s, rel=0.05), command
        assert parts["resolve"] > 0 and parts["set-up"] >= 0, command
        assert ("imports" in parts) is (command[0] != "npx")
