"""``mcpace wrap`` and ``mcpace unwrap`` on files, and the wrapped servers as a host starts them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mcpace import MCPServer, _core
from mcpace.lab.hosts.flights import Flight, list_flights, make_flight
from mcpace.ui.flights import Flights, is_in_use
from support import interop
from support.commands import LIMIT_S, end, run, start_command
from support.http_client import HttpClient
from support.python_server import served
from support.wrapped_host import STARTER, Host, command_line, configure, flight, hosting, prepare, root, state, wrap


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return prepare(tmp_path)


def methods(file: Path) -> list[str]:
    """Methods of the requests of a recording, in order."""
    explained = _core.explained([str(file)])
    return [one["method"] for one in explained.methods for _ in range(one["requests"])]


def wait_until(condition: Callable[[], object]) -> None:
    """Polls what no event tells: the end of a process that is no child, and the contents of a file."""
    until = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_wrapping_and_unwrapping_a_file(place: Path) -> None:
    file = configure(place, env={"KEY": "${HOME}"}, unknown=[1])
    file.chmod(0o640)
    before = file.read_bytes()
    link = place / "link.json"
    link.symlink_to(file)
    ended = wrap(place, link)
    assert (ended.code, ended.stdout) == (0, f"{link}: 1 server (calculator) wrapped\n")
    assert file.read_bytes() != before
    assert wrap(place, file).code == 0
    wrapped = file.read_bytes()
    assert (wrap(place, file).code, file.read_bytes()) == (0, wrapped)
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    folder = flight(place).folder
    assert (flight(place).server, flight(place).configuration) == ("calculator", str(file))
    assert [one.stat().st_mode & 0o777 for one in (root(place), folder, folder / "server.json")] == [
        0o700,
        0o700,
        0o600,
    ]
    ended = run("unwrap", file, folder=place)
    assert (ended.code, ended.stdout) == (0, f"{file}: 1 server (calculator) restored\n")
    assert file.read_bytes() == before


BAD = {
    "{": "is not JSON: ",
    "[]": "has no servers: ",
    '{"mcpServers": {}}': "has no servers: ",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_configuration_is_refused_in_one_sentence(place: Path, text: str) -> None:
    file, good = place / "bad.json", configure(place)
    before = good.read_bytes()
    file.write_text(text)
    for command in ("wrap", "unwrap"):
        ended = run(command, good, file, folder=place, environment=state(place))
        assert (ended.code, ended.stdout) == (2, "")
        assert ended.sentence().startswith(f"{file} {BAD[text]}")
    assert good.read_bytes() == before


def test_files_that_are_missing_or_no_text_are_refused(place: Path) -> None:
    (place / "bytes.json").write_bytes(b"\xff")
    for name, reason in {"missing.json": "No such file", "bytes.json": "no UTF-8", ".": "Is a directory"}.items():
        ended = wrap(place, name)
        assert ended.code == 2
        assert reason in ended.sentence()
    ended = wrap(place, configure(place), "--server", "calculater")
    assert (ended.code, ended.sentence()) == (2, "unknown server 'calculater'; did you mean calculator?")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_configuration_of_another_user_is_left_alone(place: Path) -> None:
    file = configure(place)
    os.chown(file, 12345, 12345)
    ended = wrap(place, file)
    assert (ended.code, ended.sentence()) == (2, f"cannot change {file}: it belongs to another user")


def test_a_wrapped_server_answers_and_is_recorded(place: Path) -> None:
    file = configure(place)
    assert wrap(place, file).code == 0
    with hosting(command_line(file)) as host:
        assert host.call("add", a=1, b=2)["structuredContent"] == {"result": 3}
        [recording] = flight(place).recordings()
        assert is_in_use(recording)
        assert host.call("fail")["isError"]
        # A failed call is written at once, and the rest after a second.
        wait_until(lambda: methods(recording).count("tools/call") == 2)
        code, stderr = host.end()
    assert (code, "mcpace: " in stderr) == (0, False)
    assert recording.stat().st_mode & 0o777 == 0o600
    assert not is_in_use(recording)
    assert sorted(methods(recording)) == ["initialize", "tools/call", "tools/call"]


def test_two_of_each_write_two_files(place: Path) -> None:
    file = configure(place)
    assert wrap(place, file).code == 0
    with hosting(command_line(file)) as first, hosting(command_line(file)) as second:
        first.call("add", a=1, b=2)
        second.call("add", a=1, b=2)
        assert len(Flights(root(place)).entries()) == 2
        first.end()
        second.end()
    recordings = flight(place).recordings()
    assert len(recordings) == 2
    assert all(sorted(methods(one)) == ["initialize", "tools/call"] for one in recordings)


def test_without_mcpace_the_server_runs_and_says_so(place: Path) -> None:
    file = configure(place)
    assert wrap(place, file).code == 0
    for missing in (3, 4):
        words = command_line(file)
        words[missing] = str(place / "removed" / "mcpace")
        with hosting(words) as host:
            assert host.call("add", a=1, b=2)["structuredContent"] == {"result": 3}
            code, stderr = host.end()
        assert code == 0
        assert stderr.startswith("mcpace: ")
        assert "is missing, so the server runs without the flight recorder" in stderr
    assert flight(place).recordings() == []


def test_words_with_a_meaning_to_a_shell_reach_the_server_unchanged(place: Path) -> None:
    odd = ["", "a b", "$HOME", "`id`", "'\"", "*", "\\", "é😀", "$(id)", "-EP", "--", "\n"]
    (place / "server.py").write_text(
        "import json, sys\nprint(json.dumps(sys.argv[2:]), flush=True)\nsys.stdin.read()\n"
    )
    file = place / "mcp.json"
    entry = {"command": sys.executable, "args": [str(place / "server.py"), "x", *odd]}
    file.write_text(json.dumps({"mcpServers": {"calculator": entry}}))
    assert wrap(place, file).code == 0
    words = command_line(file)
    for command in (words, [*words[:3], "/removed", *words[4:]]):
        host = Host(command)
        assert json.loads(host.line()) == odd
        host.end()


def test_a_full_disk_ends_the_recording_and_not_the_server(place: Path) -> None:
    file = configure(place)
    assert wrap(place, file).code == 0
    with hosting(command_line(file), file_limit=100_000) as host:
        for _ in range(4):
            assert len(host.call("payload", size=60_000)["content"][0]["text"]) == 60_000
        host.call("fail")
        [recording] = flight(place).recordings()
        # The recorder gives up the file after the failure.
        wait_until(lambda: not is_in_use(recording))
        assert host.call("add", a=1, b=2)["structuredContent"] == {"result": 3}
        code, stderr = host.end()
    assert code == 0
    assert stderr.count(f"mcpace: the flight recorder can't write to {flight(place).folder} (") == 1
    assert _core.Recording.load(str(recording)).partial


def test_a_folder_that_cannot_be_made_ends_nothing(place: Path) -> None:
    file = configure(place)
    assert wrap(place, file).code == 0
    folder = flight(place).folder
    (folder / "server.json").unlink()
    folder.rmdir()
    folder.write_text("a file")
    with hosting(command_line(file)) as host:
        assert host.call("add", a=1, b=2)["structuredContent"] == {"result": 3}
        code, stderr = host.end()
    assert code == 0
    assert "the flight recorder can't write" in stderr


@pytest.mark.parametrize("program", ["server.py", "stubborn.py"])
def test_a_killed_host_leaves_no_process(place: Path, program: str) -> None:
    file = configure(place, program)
    assert wrap(place, file).code == 0
    # The host is a process between, which is killed.
    host = subprocess.Popen([sys.executable, "-c", STARTER, *command_line(file)], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    recorder = int(host.stdout.readline())
    wait_until(lambda: (place / "pid").exists() and (place / "pid").read_text())
    server = int((place / "pid").read_text())
    host.kill()
    host.communicate()
    wait_until(lambda: not is_alive(server) and not is_alive(recorder))


def test_a_server_that_cannot_start_is_reported_as_by_a_shell(place: Path) -> None:
    file = configure(place)
    file.write_text(file.read_text().replace(sys.executable, "no-such-program"))
    assert wrap(place, file).code == 0
    host = Host(command_line(file))
    code, stderr = host.end()
    assert code == 127
    assert stderr.startswith("mcpace: ")
    assert "no-such-program" in stderr


def test_a_server_that_runs_without_the_recorder_has_the_usual_signals(place: Path) -> None:
    program = (
        "import sys; sys.modules['mcpace._core'] = None; from mcpace.cli import flight_recorder; "
        "flight_recorder.run(['flights', 'grep', 'SigIgn', '/proc/self/status'])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=place, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert "the server runs without the flight recorder" in ended.stderr
    ignored = int(ended.stdout.split()[1], 16)
    assert ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)) == 0


def test_the_environment_of_a_server_does_not_reach_the_recorder(place: Path) -> None:
    (place / "mcpace").mkdir()
    (place / "mcpace" / "__init__.py").write_text("raise SystemExit('hostile')")
    file = configure(place)
    assert wrap(place, file).code == 0
    hostile: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(place), "PYTHONSTARTUP": str(place / "x")}
    ended = subprocess.run(
        [*command_line(file)[:7], "/bin/sh", "-c", "echo $PYTHONPATH"],
        cwd=place,
        env=dict(hostile),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{place}\n", "")
    assert len(flight(place).recordings()) == 1


def remote_configuration(place: Path, port: int) -> Path:
    file = place / "mcp.json"
    file.write_text(
        "{ // remote\n"
        f'  "servers": {{"calculator": {{"type": "http", "url": "http://127.0.0.1:{port}/mcp?key=${{env:KEY}}",}},\n'
        '    "variable": {"url": "https://${env:PLACE}/mcp"}}\n}\n'
    )
    return file


def calculator() -> MCPServer:
    mcp = MCPServer("calculator")

    @mcp.tool()
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    return mcp


def local_port(file: Path) -> int:
    return int(re.search(r'"http://127.0.0.1:(\d+)/mcp\?key=\$\{env:KEY\}"', file.read_text())[1])  # type: ignore[index]


def test_servers_with_a_url_are_recorded_while_the_command_runs(place: Path) -> None:
    with served(calculator()) as port:
        file = remote_configuration(place, port)
        before = file.read_bytes()
        ended = wrap(place, file)
        assert (ended.code, file.read_bytes()) == (0, before)
        assert "mcpace wrap --urls records such servers" in ended.stderr
        ports = []
        for _ in range(2):
            with start_command("wrap", "--urls", file, folder=place, environment=state(place)) as command:
                assert command.stdout is not None
                assert "wrapped" in command.stdout.readline()
                assert command.stdout.readline() == f"{file}: 1 server (calculator) recorded until Ctrl-C\n"
                ports.append(local_port(file))
                client = HttpClient(ports[-1])
                client.initialize()
                assert client.call("add", a=1, b=2)["structuredContent"] == {"result": 3}
                file.write_text(file.read_text().replace("// remote", "// edited"))
                command.send_signal(signal.SIGINT)
                ended = end(command)
            assert (ended.code, "is left as it is: its URL has a variable" in ended.stderr) == (0, True)
            assert file.read_bytes() == before.replace(b"// remote", b"// edited")
        assert ports[0] == ports[1] != port
        assert [methods(one).count("tools/call") for one in flight(place).recordings()] == [1, 1]


def test_urls_are_restored_after_a_kill(place: Path) -> None:
    with served(calculator()) as port:
        file = remote_configuration(place, port)
        before = file.read_bytes()
        with start_command("wrap", "--urls", file, folder=place, environment=state(place)) as command:
            assert command.stdout is not None
            assert [command.stdout.readline() for _ in range(2)][1].endswith("recorded until Ctrl-C\n")
            command.kill()
            command.communicate()
        assert file.read_bytes() != before
        # Its recorder's address identifies a server that was renamed meanwhile.
        file.write_text(file.read_text().replace('"calculator"', '"renamed"'))
        ended = run("unwrap", file, folder=place, environment=state(place))
        assert (ended.code, ended.stdout) == (0, f"{file}: 1 server (renamed) restored\n")
        assert file.read_bytes() == before.replace(b'"calculator"', b'"renamed"')


def test_one_file_that_cannot_be_restored_leaves_the_others_restored(place: Path) -> None:
    files = [place / "a.json", place / "b.json", place / "c.json"]
    for file in files:
        file.write_text('{"servers": {"shop": {"url": "http://127.0.0.1:9/mcp"}}}')
    before = files[0].read_bytes()
    words = ("wrap", "--urls", "--server", "shop", *files)
    with start_command(*words, folder=place, environment=state(place)) as command:
        assert command.stdout is not None
        assert [command.stdout.readline() for _ in range(6)][5].endswith("recorded until Ctrl-C\n")
        written = files[0].read_text()
        files[0].write_text("{")
        files[1].write_text(files[1].read_text().replace('"shop"', '"renamed"'))
        for folder in root(place).iterdir():
            (folder / "server.json").unlink()
        command.stdout.close()
        command.send_signal(signal.SIGINT)
        assert command.stderr is not None
        stderr = command.stderr.read()
        assert command.wait(LIMIT_S) == 3
    assert f"mcpace: {files[0]} is not JSON: " in stderr
    assert stderr.endswith(f"run mcpace unwrap {files[0]}\n")
    assert files[1].read_bytes() == before.replace(b'"shop"', b'"renamed"')
    assert files[2].read_bytes() == before
    # Without the server's own address, the entry is named and left.
    files[0].write_text(written)
    ended = run("unwrap", files[0], folder=place, environment=state(place))
    assert (ended.code, ended.stdout, files[0].read_text()) == (0, f"{files[0]}: no server restored\n", written)
    assert "shop is left as it is: http://127.0.0.1:" in ended.stderr
    assert "which says so, can't be read" in ended.stderr
    again = wrap(place, files[0], "--urls")
    assert (again.code, files[0].read_text()) == (0, written)


def test_the_address_of_a_server_is_written_whole_or_not_at_all(place: Path) -> None:
    folder = place / "shop"
    make_flight(Flight(folder, "shop", "mcp.json", "https://shop.example", "http://127.0.0.1:5"))
    first = (folder / "server.json").stat().st_ino
    make_flight(Flight(folder, "shop", "mcp.json", "https://other.example", "http://127.0.0.1:5"))
    assert (folder / "server.json").stat().st_ino != first
    assert [one.name for one in folder.iterdir()] == ["server.json"]
    (folder / "server.json").unlink()
    (folder / "server.json").symlink_to(place / "precious")
    make_flight(Flight(folder, "shop", "mcp.json"))
    assert not (folder / "server.json").is_symlink()
    assert not (place / "precious").exists()


@pytest.mark.network
def test_a_real_host_and_a_real_server(place: Path) -> None:
    [interpreter, client] = interop.python(interop.SOURCES / "fastmcp", interop.INSTALLED / "fastmcp")
    folder = Path(client).parent
    server = {"command": interpreter, "args": [str(folder / "server.py"), "stdio"]}
    file = place / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"one": server, "two": server}}, indent=4))
    before = file.read_bytes()
    words = [interpreter, str(folder / "host.py"), str(file), "one_echo", "two_echo", "one_echo"]
    texts = json.loads(interop.run(words, place, LIMIT_S))
    assert wrap(place, file).code == 0
    assert json.loads(interop.run(words, place, LIMIT_S)) == texts == ["to one_echo", "to two_echo", "to one_echo"]
    flights = {flight.server: flight.recordings() for flight in list_flights(root(place))}
    calls = {server: [methods(file).count("tools/call") for file in files] for server, files in flights.items()}
    assert calls == {"one": [2], "two": [1]}
    assert run("unwrap", file, folder=place).code == 0
    assert file.read_bytes() == before
