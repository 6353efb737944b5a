"""A user's program that listens: started for an experiment, found by the sockets on which it listens, and ended.

The program says nowhere at which URL it serves MCP. Its listening sockets name the address, and an MCP client tries
the usual paths there.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from mcpace import _core
from mcpace.lab.errors import Unreachable, UsageProblem
from mcpace.lab.processes.adapter_process import READY_LIMIT_S, AdapterProcess, spawn_group
from mcpace.lab.processes.child_processes import wait_exit
from mcpace.lab.processes.listening_sockets import Address, listening_addresses, url_port
from mcpace.lab.processes.process_usage import process_tree
from mcpace.system.process_groups import has_exited, kill_group, signal_group

PATHS = ("/mcp", "/mcp/", "/sse", "/", "/api/mcp")
"""Paths of MCP endpoints, the most usual one first."""
SETTLE_S = 10.0
"""Seconds after which an address that answers without MCP at any path is given up."""
CONNECT_LIMIT_S = 10.0
"""Most seconds of one attempt to connect."""
LOOK_EVERY_S = 0.05
TRY_EVERY_S = 0.5
END_LIMIT_S = 3.0
"""Seconds from SIGINT, which Ctrl-C sends, to SIGTERM."""
MOST_NAMED = 4
"""Most addresses that a message names."""

Connect = Callable[[str, float], None]
"""Connects to a URL as an MCP client within a time limit in seconds, and disconnects. Raises
:class:`mcpace._core.ClientProblem`."""


class ListeningProgram(AdapterProcess):
    """A running program, created by :meth:`start`. Use as a context manager or call :meth:`close`."""

    url: str
    """URL of the program's MCP endpoint."""

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        connect: Connect,
        *,
        url: str | None = None,
        env: Mapping[str, str] | None = None,
        limit_s: float = READY_LIMIT_S,
    ) -> ListeningProgram:
        """Starts the command in the current folder and waits until an MCP client can connect.

        ``url`` is the endpoint, where the user named it. Raises :class:`UsageProblem` where another program already
        listens there, :class:`ProgramDied` where the program ends, and :class:`Unreachable` where no endpoint is found.
        After an exception, the program is not running.
        """
        if url is not None:
            _require_free_address(url)
        program = cls(spawn_group(command, cwd=Path.cwd(), env=env))
        program._ignores_stdout = True
        try:
            for thread in program._threads:
                thread.start()
            program.url = program._find_endpoint(connect, url, time.monotonic() + limit_s)
        except BaseException:
            program._kill()
            raise
        return program

    def _ask_to_end(self) -> None:
        # A program that listens doesn't read its stdin. SIGINT lets it end as after Ctrl-C.
        super()._ask_to_end()
        signal_group(self._process, signal.SIGINT)

    def close(self, limit_s: float = END_LIMIT_S) -> None:
        """Ends the program: SIGINT, SIGTERM, SIGKILL, each with a time limit. Harmless after its exit."""
        super().close(limit_s)

    def crash(self) -> None:
        """Kills the program and its group at once."""
        kill_group(self._process)
        self._kill()

    def terminate(self, limit_s: float) -> None:
        """Ends the program as a rolling update does: SIGTERM, then SIGKILL after ``limit_s`` seconds."""
        signal_group(self._process, signal.SIGTERM)
        wait_exit(self._process, limit_s)
        self._kill()

    def _find_endpoint(self, connect: Connect, url: str | None, until: float) -> str:
        """Tries the known URL, or the usual paths of each address, until one answers or there is no more time."""
        first_seen: dict[Address, float] = {}
        problems: dict[str, str] = {}
        tried = -TRY_EVERY_S
        while time.monotonic() < until:
            if has_exited(self._process):
                raise self._exit_problem("the first connection")
            addresses = listening_addresses(process_tree(self.pid))
            is_new = any(address not in first_seen for address in addresses)
            first_seen = dict.fromkeys(addresses, time.monotonic()) | first_seen
            if is_new or time.monotonic() - tried >= TRY_EVERY_S:
                for candidate in [url] if url is not None else _candidate_urls(addresses):
                    left_s = until - time.monotonic()
                    if left_s <= 0 or has_exited(self._process):
                        break
                    try:
                        connect(candidate, min(CONNECT_LIMIT_S, left_s))
                        return candidate
                    except _core.ClientProblem as problem:
                        problems[candidate] = str(problem)
                tried = time.monotonic()
            if url is None and first_seen and tried - min(first_seen.values()) > SETTLE_S:
                break
            time.sleep(LOOK_EVERY_S)
        if has_exited(self._process):
            raise self._exit_problem("the first connection")
        raise self._no_endpoint(url, sorted(first_seen), problems)

    def _no_endpoint(self, url: str | None, addresses: list[Address], problems: dict[str, str]) -> Unreachable:
        if url is not None:
            return Unreachable(f"the program runs, but {url} can't be reached: {problems.get(url, 'no reason given')}")
        if not addresses:
            return Unreachable(f"the program runs and listens on no TCP port{self._stderr_summary()}")
        places = ", ".join(_authority(address) for address in addresses[:MOST_NAMED])
        reasons = "; ".join(f"{urlsplit(tried).path}: {why}" for tried, why in list(problems.items())[:2])
        return Unreachable(
            f"the program listens at {places}, and no path of {', '.join(PATHS)} is an MCP endpoint ({reasons}): name "
            "the URL, as in serve:'http://127.0.0.1:8000/path COMMAND'"
        )


def _candidate_urls(addresses: Sequence[Address]) -> list[str]:
    """URLs to try, of which each leads to the program: attempts carry the user's credentials."""
    hosts = [_authority(address) for address in sorted(addresses)]
    # Some servers answer at the name of the machine only.
    hosts += [f"localhost:{port}" for port in sorted({port for _, port in addresses}) if _localhost(port) in addresses]
    return [f"http://{host}{path}" for host in hosts for path in PATHS]


def _localhost(port: int) -> Address | None:
    """The address to which a connection to ``localhost`` leads first."""
    try:
        host, number = socket.getaddrinfo("localhost", port, type=socket.SOCK_STREAM)[0][4][:2]
    except OSError:
        return None
    return str(host), int(number)


def _authority(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _require_free_address(url: str) -> None:
    """Another program at the address would be measured in the place of the one that is started."""
    host, port = urlsplit(url).hostname or "", url_port(url)
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1.0):
        raise UsageProblem(f"another program already listens at {host}:{port}: end it, or measure {url} alone")
