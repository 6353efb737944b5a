"""The command ``mcpace serve``: messages, exit codes, signals, workers, TLS, reload, stdio."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import LIMIT_S, Ended, run
from support.http_client import LEGACY, HttpClient
from support.serve_process import Served, children, modern, serving

DONE, USAGE, SETUP, INTERRUPTED = 0, 2, 3, 130

SOURCE = """
import os, sys, time
from pathlib import Path
from mcpace import MCPServer

mcp = MCPServer("weather")

def begin():
    sys.stderr.write("a call begins\\n")

@mcp.tool()
def forecast(city: str) -> str:
    return f"Sunny in {city}"

@mcp.tool()
def who() -> str:
    return str(os.getpid())

@mcp.tool()
def wait() -> str:
    "Begins, and ends once it is told to."
    begin()
    return Path("go").read_text()

@mcp.tool()
async def forever() -> str:
    import asyncio
    begin()
    try:
        await asyncio.Event().wait()
    finally:
        Path("cancelled").touch()
    return "never"

@mcp.tool()
def stuck() -> str:
    begin()
    while True:
        time.sleep(1)

@mcp.resource("weather://about")
def about() -> str:
    return "about"

@mcp.prompt()
def ask(city: str) -> str:
    return f"How is {city}?"
"""


@pytest.fixture
def served(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Served]:
    """Serves this file's server with a test's options on a free port."""
    words = getattr(request, "param", ())
    with serving(tmp_path, "server.py", "--port", 0, *words, source=SOURCE) as one:
        yield one


def options(*words: object) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("served", [words], indirect=True, ids=[" ".join(map(str, words)) or "none"])


def test_the_first_line_says_what_and_where(served: Served) -> None:
    line = served.ready()
    assert re.fullmatch(
        r"mcpace \d+\.\d+\.\d+ serving weather: 5 tools, 1 resource, 1 prompt"
        r" at http://127\.0\.0\.1:\d+/mcp \(sessions\)",
        line,
    )
    client = HttpClient(served.port)
    client.initialize()
    assert client.session
    assert client.text("forecast", city="Oslo") == "Sunny in Oslo"
    assert modern(served.port, "forecast", city="Rome")["content"][0]["text"] == "Sunny in Rome"


@options("--json-response", "--stateless", "--path", "/elsewhere", "--log-level", "error")
def test_options_reach_the_server_and_the_first_line(served: Served) -> None:
    line = served.ready()
    assert line.endswith(f"http://127.0.0.1:{served.port}/elsewhere (no sessions, JSON only)")
    client = HttpClient(served.port, path="/elsewhere")
    client.initialize()
    assert client.session is None
    status, headers, _ = client.exchange("tools/list", {}, Accept="text/event-stream, application/json")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert HttpClient(served.port).exchange("ping", {})[0] == 404


@options("--server-timing", "--allowed-host", "mcp.example", "--allowed-origin", "https://app.example")
def test_hosts_origins_and_timing(served: Served) -> None:
    served.ready()
    client = HttpClient(served.port)
    client.initialize()
    _, headers, _ = client.exchange("tools/call", {"name": "who", "arguments": {}})
    assert "service;dur=" in headers["server-timing"]
    assert client.exchange("ping", {}, Host="mcp.example")[0] == 200
    assert client.exchange("ping", {}, Host="evil.example")[0] == 403
    assert client.exchange("ping", {}, Origin="https://app.example")[0] == 200
    assert client.exchange("ping", {}, Origin="https://evil.example")[0] == 403


@pytest.mark.parametrize("workers", [1, 2])
def test_the_access_log_has_a_line_for_each_request(workers: int, tmp_path: Path) -> None:
    with serving(tmp_path, "server.py", "--port", 0, "--access-log", "--workers", workers, source=SOURCE) as one:
        one.ready()
        modern(one.port, "forecast", city="Oslo")
        one.lines.until(r"^20\d\d-\d\d-\d\dT\S+Z POST /mcp 200 \d+\.\d{3} ms tools/call forecast$")
        # A session's calls: whichever process takes them, one line each.
        client = HttpClient(one.port)
        client.initialize()
        one.lines.until(r"POST /mcp 200 .* ms initialize$")
        for _ in range(5):
            again = HttpClient(one.port, revision=LEGACY, session=client.session)
            again.text("who")
        HttpClient(one.port).exchange("tools/call", {"name": "\x1b[2J\n"})
        one.lines.until(r"POST /mcp 400 .* ms tools/call \\u\{1b\}\[2J\\n$")
        one.process.send_signal(signal.SIGTERM)
        assert one.ended() == DONE
    assert sum(line.endswith("tools/call who") for line in one.lines.said) == 5


def test_an_access_log_that_nobody_reads_holds_nobody_up(tmp_path: Path) -> None:
    with serving(tmp_path, "server.py", "--port", 0, "--access-log", source=SOURCE) as one:
        one.ready()
        client = HttpClient(one.port)
        # More than the pipe and the queue have room for.
        total = 2_000
        for _ in range(total):
            assert client.send("GET", "/" + "x" * 150, Mcp_Method="y" * 150, Mcp_Name="z" * 150)[0] == 404
        client.close()
        one.lines.until(r"the access log left out \d+ lines: stderr is read too slowly$")
        one.process.send_signal(signal.SIGTERM)
        assert one.ended() == DONE
    left_out = sum(int(number) for number in re.findall(r"left out (\d+) lines", one.said))
    assert left_out > 0
    assert sum(line.endswith("z" * 150) for line in one.lines.said) + left_out == total


def test_a_server_for_other_machines_says_who_may_ask(tmp_path: Path) -> None:
    with serving(tmp_path, "server.py", "--port", 0, "--host", "0.0.0.0", source=SOURCE) as one:
        assert "http://0.0.0.0:" in one.ready()
        one.lines.until("other machines reach it; requests must name the host localhost; name .* --allowed-host")


# How it ends ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, DONE)])
def test_a_signal_lets_calls_in_flight_finish(number: signal.Signals, code: int, workers: int, tmp_path: Path) -> None:
    with serving(tmp_path, "server.py", "--port", 0, "--workers", workers, source=SOURCE) as one:
        one.ready()
        os.mkfifo(tmp_path / "go")
        answer, thread = in_background(one, "wait")
        one.process.send_signal(number)
        one.lines.until("stopping: calls in flight have up to 10 s")
        # No new connection is taken, and the call still has its time.
        refused(one.port)
        (tmp_path / "go").write_text("waited")
        assert one.ended() == code
        thread.join(LIMIT_S)
    assert answer == ["waited"]


@options("--graceful-timeout", "100ms")
def test_calls_that_do_not_finish_in_time_are_cut_off(served: Served, tmp_path: Path) -> None:
    served.ready()
    answer, thread = in_background(served, "forever")
    served.process.send_signal(signal.SIGTERM)
    assert served.ended() == DONE
    thread.join(LIMIT_S)
    assert answer == []
    assert "cut off 1 connection with calls that did not finish in time" in served.said
    assert (tmp_path / "cancelled").exists()
    # The function did nothing wrong.
    assert "exception" not in served.said
    assert "Traceback" not in served.said


@options("--graceful-timeout", "100ms")
def test_a_call_that_never_ends_does_not_hold_up_the_exit(served: Served) -> None:
    served.ready()
    _, thread = in_background(served, "stuck")
    served.process.send_signal(signal.SIGTERM)
    assert served.ended() == DONE
    thread.join(LIMIT_S)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_second_signal_ends_at_once(workers: int, tmp_path: Path) -> None:
    words = ("--graceful-timeout", "1h", "--workers", workers)
    with serving(tmp_path, "server.py", "--port", 0, *words, source=SOURCE) as one:
        one.ready()
        _, thread = in_background(one, "stuck")
        one.process.send_signal(signal.SIGINT)
        one.lines.until("Ctrl-C again ends at once")
        one.process.send_signal(signal.SIGINT)
        assert one.ended() == INTERRUPTED
        thread.join(LIMIT_S)


def test_the_lifespan_is_entered_before_and_left_after(tmp_path: Path) -> None:
    source = """
        import sys
        from contextlib import asynccontextmanager
        from mcpace import MCPServer

        @asynccontextmanager
        async def lifespan(server):
            print("entered", file=sys.stderr)
            yield {}
            print("left", file=sys.stderr)

        mcp = MCPServer("alive", lifespan=lifespan)
    """
    with serving(tmp_path, "server.py", "--port", 0, source=source) as one:
        one.lines.until("^entered$")
        assert "nothing yet" in one.ready()
        one.process.send_signal(signal.SIGTERM)
        assert one.ended() == DONE
        assert one.lines.said.count("left") == 1


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("when", ["enter", "leave"])
def test_what_a_lifespan_raises_is_the_authors_traceback(when: str, workers: int, tmp_path: Path) -> None:
    source = f"""
        from contextlib import asynccontextmanager
        from mcpace import MCPServer

        @asynccontextmanager
        async def lifespan(server):
            if "{when}" == "enter":
                raise ConnectionError("no database")
            yield
            raise ConnectionError("no database")

        mcp = MCPServer("broken", lifespan=lifespan)
    """
    with serving(tmp_path, "server.py", "--port", 0, "--workers", workers, source=source) as one:
        if when == "leave":
            one.ready()
            one.process.send_signal(signal.SIGTERM)
        code = one.ended()
    # In workers, the last words of one that is ending are its own; the parent's end was asked for.
    assert code == (SETUP if when == "enter" or workers == 1 else DONE)
    assert "ConnectionError: no database" in one.said
    assert one.said.count("Traceback") == (1 if when == "enter" else workers)
    assert "mcpace/server" not in one.said


@pytest.mark.parametrize("workers", [1, 2])
def test_a_lifespan_that_leaves_python_could_not_be_set_up(workers: int, tmp_path: Path) -> None:
    source = """
        import sys
        from contextlib import asynccontextmanager
        from mcpace import MCPServer

        @asynccontextmanager
        async def lifespan(server):
            sys.exit("no database")
            yield

        mcp = MCPServer("leaving", lifespan=lifespan)
    """
    with serving(tmp_path, "server.py", "--port", 0, "--workers", workers, source=source) as one:
        assert one.ended() == SETUP
    assert "SystemExit: no database" in one.said
    assert "mcpace/server" not in one.said


@pytest.mark.parametrize("workers", [1, 2])
def test_a_lifespan_that_hangs_does_not_hold_up_ctrl_c(workers: int, tmp_path: Path) -> None:
    source = """
        import asyncio, sys
        from contextlib import asynccontextmanager
        from mcpace import MCPServer

        @asynccontextmanager
        async def lifespan(server):
            print("entering", file=sys.stderr)
            await asyncio.Event().wait()
            yield

        mcp = MCPServer("hanging", lifespan=lifespan)
    """
    words = ("--port", 0, "--workers", workers, "--graceful-timeout", "1h")
    with serving(tmp_path, "server.py", *words, source=source) as one:
        one.lines.until("^entering$")
        one.process.send_signal(signal.SIGINT)
        assert one.ended() == INTERRUPTED
        assert "Traceback" not in one.said


# Failures of the set-up -------------------------------------------------------------------------------------------


def test_a_module_that_does_not_import_shows_its_own_traceback(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def deep():\n    raise ValueError('no such city')\ndeep()\n")
    for words in ((), ("--workers", 2)):
        with serving(tmp_path, "broken:mcp", "--port", 0, *words) as one:
            assert one.ended() == SETUP
        assert one.said.startswith("Traceback (most recent call last):")
        assert one.said.endswith("ValueError: no such city")
        assert one.said.count("  File ") == 2
        assert "site-packages" not in one.said
        assert str(Path(__file__).parents[3]) not in one.said


@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_in_use_is_named(workers: int, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SOURCE)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run("serve", "server.py", "--port", port, "--workers", workers, folder=tmp_path)
    assert ended.code == SETUP
    assert ended.sentence().startswith(f"127.0.0.1:{port} is in use by another program: ")


def test_the_port_of_another_of_our_servers_is_in_use(tmp_path: Path) -> None:
    with serving(tmp_path, "server.py", "--port", 0, "--workers", 2, source=SOURCE) as one:
        one.ready()
        for workers in (1, 2):
            ended = run("serve", "server.py", "--port", one.port, "--workers", workers, folder=tmp_path)
            assert (ended.code, "is in use" in ended.sentence()) == (SETUP, True)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["nowhere:mcp"], SETUP, "there is no module 'nowhere' in "),
        (["nowhere.py"], SETUP, "there is no file nowhere.py"),
        (["server.py:nothing"], SETUP, "server.py has no 'nothing'; it has mcp"),
        (["server.py:forecast"], SETUP, "server.py:forecast is a function that wants arguments"),
        (["server.py:os"], SETUP, "server.py:os is a module, and no MCP server that mcpace knows"),
        (["http://127.0.0.1:1/mcp"], USAGE, "is a URL: what is served is a Python module's server"),
        (["server.py", "--path", "mcp"], USAGE, "doesn't begin with a slash: write /mcp"),
        (["server.py", "--path", "/a?b"], USAGE, "no client could ask for the path '/a?b'"),
        (["server.py", "--path", "//"], USAGE, "no client could ask for the path '//'"),
        (["server.py", "--allowed-host", "https://a.example"], USAGE, "'https://a.example' is not an allowed host"),
        (["server.py", "--allowed-origin", "a.example"], USAGE, "'a.example' is not an origin"),
        (["server.py", "--ssl-certfile", "c.pem"], USAGE, "there is no key: add --ssl-keyfile"),
        (
            ["server.py", "--ssl-certfile", "c.pem", "--ssl-keyfile", "k.pem"],
            SETUP,
            "the certificate c.pem can't be read",
        ),
        (["server.py", "--reload", "--workers", "2"], USAGE, "--reload is for development and runs one process"),
        (["server.py", "-t", "stdio", "--workers", "2"], USAGE, "stdio has one client and one process"),
        (["server.py", "--host", "no.such.host.invalid"], SETUP, "there is no host 'no.such.host.invalid'"),
        (["server.py", "--host", "192.0.2.1"], SETUP, "192.0.2.1 is no address of this machine"),
    ],
)
def test_what_can_not_be_is_said_in_a_sentence(words: list[str], code: int, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SOURCE)
    ended: Ended = run("serve", *words, folder=tmp_path)
    assert (ended.code, ended.stdout) == (code, "")
    assert sentence in ended.sentence()


@pytest.mark.parametrize(
    "words", [["--port", "x"], ["--workers", "0"], ["--transport", "smoke"], ["--graceful-timeout", "-1"]]
)
def test_what_is_no_option_is_usage(words: list[str], tmp_path: Path) -> None:
    assert run("serve", "server.py", *words, folder=tmp_path).code == USAGE


# Workers ----------------------------------------------------------------------------------------------------------


@options("--workers", 2)
def test_two_workers_share_the_load(served: Served) -> None:
    assert served.ready().endswith("(2 workers, sessions)")
    workers = {str(pid) for pid in children(served.process.pid)}
    assert len(workers) == 2
    met: set[str] = set()
    # The kernel spreads connections by a hash of their ports: that one gets none of these is as good as impossible.
    for _ in range(200):
        met.add(modern(served.port, "who")["content"][0]["text"])
        if met == workers:
            break
    assert met == workers


@options("--workers", 2)
def test_a_session_is_found_by_whichever_worker_takes_the_request(served: Served) -> None:
    served.ready()
    first = HttpClient(served.port)
    first.initialize()
    owner = first.text("who")
    for _ in range(20):
        other = HttpClient(served.port, revision=LEGACY, session=first.session)
        assert other.text("who") == owner
        other.close()


@options("--workers", 2)
def test_a_worker_that_dies_is_replaced_and_its_sessions_are_gone(served: Served) -> None:
    served.ready()
    clients = [HttpClient(served.port) for _ in range(20)]
    for client in clients:
        client.initialize()
    owners = [int(client.text("who")) for client in clients]
    dead = owners[0]
    os.kill(dead, signal.SIGKILL)
    number = served.lines.until(rf"worker (\d) \(pid {dead}\) was ended by SIGKILL; its sessions are lost")[1]
    successor = int(served.lines.until(rf"worker {number} \(pid (\d+)\) serves again")[1])
    assert successor in children(served.process.pid)
    for client, owner in zip(clients, owners, strict=True):
        again = HttpClient(served.port, revision=LEGACY, session=client.session)
        status, _, _ = again.exchange("ping", {})
        assert status == (404 if owner == dead else 200)
        again.close()


@pytest.mark.parametrize("workers", [2])
def test_kill_9_of_the_parent_leaves_no_worker(workers: int, tmp_path: Path) -> None:
    with serving(tmp_path, "server.py", "--port", 0, "--workers", workers, source=SOURCE) as one:
        one.ready()
        _, thread = in_background(one, "stuck")
        one.process.kill()
        # Their stderr is ours: this waits for the last of them.
        assert one.ended() == -signal.SIGKILL
        thread.join(LIMIT_S)
        refused(one.port)


# Other ways -------------------------------------------------------------------------------------------------------


def test_tls_with_a_certificate(tmp_path: Path) -> None:
    openssl = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost"]
    names += ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*openssl, *names], cwd=tmp_path, check=True, capture_output=True, timeout=LIMIT_S)
    words = ("--ssl-certfile", "cert.pem", "--ssl-keyfile", "key.pem")
    for workers in (1, 2):
        with serving(tmp_path, "server.py", "--port", 0, "--workers", workers, *words, source=SOURCE) as one:
            assert " at https://127.0.0.1:" in one.ready()
            trusted = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
            client = HttpClient(one.port, tls=trusted)
            client.initialize()
            assert client.text("forecast", city="Oslo") == "Sunny in Oslo"
    (tmp_path / "key.pem").write_text("no key")
    ended = run("serve", "server.py", "--port", 0, *words, folder=tmp_path)
    assert ended.code == USAGE
    assert "certificate or its key" in ended.sentence()


def test_a_changed_file_starts_the_server_anew(tmp_path: Path) -> None:
    with serving(tmp_path, "server.py", "--port", 0, "--reload", source=SOURCE) as one:
        assert one.ready().endswith("(sessions, reloads)")
        assert modern(one.port, "forecast", city="Oslo")["content"][0]["text"] == "Sunny in Oslo"
        (tmp_path / "server.py").write_text(SOURCE.replace("Sunny", "Rainy"))
        one.lines.until(r"server\.py changed: starting again")
        one.lines.until("serves again")
        assert modern(one.port, "forecast", city="Oslo")["content"][0]["text"] == "Rainy in Oslo"
        # A mistake is shown, and the next change mends it.
        (tmp_path / "server.py").write_text("this is no Python")
        one.lines.until("SyntaxError")
        one.lines.until("ended with exit code 3; it is started again when a file changes")
        (tmp_path / "server.py").write_text(SOURCE.replace("Sunny", "Windy"))
        one.lines.until("serves again")
        assert modern(one.port, "forecast", city="Oslo")["content"][0]["text"] == "Windy in Oslo"
        one.process.send_signal(signal.SIGINT)
        assert one.ended() == INTERRUPTED


def test_stdio_carries_the_protocol_and_nothing_else(tmp_path: Path) -> None:
    source = SOURCE.replace('return f"Sunny', 'print("a word on stdout"); return f"Sunny')
    with serving(tmp_path, "server.py", "-t", "stdio", source=source) as one:
        assert one.ready().endswith(": 5 tools, 1 resource, 1 prompt on stdio")
        assert one.process.stdin is not None
        call = {"name": "forecast", "arguments": {"city": "Oslo"}}
        information = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        for message in (
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": information},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
        ):
            one.process.stdin.write(json.dumps(message).encode() + b"\n")
        stdout, stderr = one.process.communicate(timeout=LIMIT_S)
    assert one.process.returncode == DONE
    replies = {reply["id"]: reply for reply in map(json.loads, stdout.splitlines())}
    assert replies[2]["result"]["content"][0]["text"] == "Sunny in Oslo"
    assert b"a word on stdout" in stderr


def test_arguments_after_two_dashes_are_the_modules(tmp_path: Path) -> None:
    source = """
        import sys
        from mcpace import MCPServer
        mcp = MCPServer(" ".join(sys.argv))
    """
    for words in ((), ("--workers", 2)):
        with serving(tmp_path, "server.py", "--port", 0, *words, "--", "--config", "x.json", source=source) as one:
            assert " serving server.py --config x.json: nothing yet at " in one.ready()


def test_serve_imports_nothing_of_the_lab(tmp_path: Path) -> None:
    source = """
        import sys
        from mcpace import MCPServer
        heavy = ("mcpace.lab", "mcpace.cli.measure", "numpy", "rich", "mcp", "fastmcp", "uvicorn")
        mcp = MCPServer("loaded " + (" ".join(name for name in heavy if name in sys.modules) or "none")
            + (" typer" if "typer" in sys.modules else ""))
    """
    with serving(tmp_path, "server.py", "--port", 0, source=source) as one:
        assert " serving loaded none typer: " in one.ready()
    # A worker knows nothing of command lines.
    with serving(tmp_path, "server.py", "--port", 0, "--workers", 2, source=source) as one:
        assert " serving loaded none: " in one.ready()


def test_a_server_that_runs_itself_ends_like_the_command(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SOURCE + "\nmcp.run(transport='streamable-http', port=0)\n")
    process = subprocess.Popen(
        [sys.executable, "server.py"], cwd=tmp_path, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    one = Served(process)
    try:
        one.ready()
        assert modern(one.port, "forecast", city="Oslo")["content"][0]["text"] == "Sunny in Oslo"
        process.send_signal(signal.SIGINT)
        assert one.ended() == INTERRUPTED
        assert "Traceback" not in one.said
    finally:
        process.kill()


def in_background(served: Served, tool: str) -> tuple[list[str], threading.Thread]:
    """Starts a call on its own thread. Returns the thread and the list that gets the answer."""
    answer: list[str] = []

    def call() -> None:
        # One that is cut off has no answer.
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer.append(modern(served.port, tool)["content"][0]["text"])

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    served.lines.until("a call begins")
    return answer, thread


def refused(port: int) -> None:
    """Waits until no program listens on the port."""
    pause = threading.Event()
    for _ in range(6000):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S).close()
        except ConnectionError:
            return
        pause.wait(0.01)
    raise AssertionError(f"somebody still listens on {port}")
