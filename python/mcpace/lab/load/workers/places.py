"""Places of workers, from ``--workers``: ``local:2``, ``ssh:host1,user@host2:2222``, ``ray:4``, ``tcp:host:7349``.

Design constraint: text of the user becomes single arguments of a program, and never shell text. ``ssh`` passes its last
argument to a shell on the host, so that argument is quoted here.
"""

from __future__ import annotations

import re
import shlex
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from mcpace.lab.errors import UsageProblem
from mcpace.lab.load.workers.channel import ProcessChannel, WorkerChannel
from mcpace.lab.load.workers.handshake import DEFAULT_PORT, read_worker_token

MOST_WORKERS = 256
FORMS = (
    "write local:N, for N processes on this machine, ssh:HOST,USER@HOST:PORT, tcp:HOST:PORT, ray:N@ADDRESS, for N "
    "actors of a Ray cluster, or pods:N with --manifest"
)
WORKER_COMMAND = "load-worker"
CONNECT_LIMIT_S = 10
SSH_OPTIONS = (
    "BatchMode=yes",
    f"ConnectTimeout={CONNECT_LIMIT_S}",
    # A host that is gone ends the connection after 15 s.
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
)
DESTINATION = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.+-]*)@)?(?P<host>[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+(?:%\w+)?\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
)
RAY = re.compile(r"(?P<count>\d{1,6})?(?:@(?P<address>[^\s@]+))?|(?P<alone>[^\s@]+)", re.ASCII)
"""The part after ``ray:``: a number of workers, an address, or both."""


@dataclass(frozen=True)
class WorkerPlace(ABC):
    """One place."""

    name: str
    is_local: bool

    @abstractmethod
    def open_channel(self) -> WorkerChannel:
        """Starts the worker, or connects to it. Raises :class:`LabError`."""


@dataclass(frozen=True)
class ProcessPlace(WorkerPlace):
    """A place with a command of this machine that starts the worker there."""

    command: tuple[str, ...]

    def open_channel(self) -> WorkerChannel:
        return ProcessChannel(self.command, is_ssh=not self.is_local)


@dataclass(frozen=True)
class TcpPlace(WorkerPlace):
    """A place where a worker listens already, or will."""

    host: str
    port: int
    token: str = field(repr=False)

    def open_channel(self) -> WorkerChannel:
        from mcpace.lab.load.workers.tcp_channel import TcpChannel

        return TcpChannel(self.host, self.port, self.token)


@dataclass(frozen=True)
class RayPlace(WorkerPlace):
    """An actor of a Ray cluster."""

    address: str
    threads: int

    def open_channel(self) -> WorkerChannel:
        from mcpace.lab.load.workers.ray_channel import RayChannel

        return RayChannel(self.address, self.threads)


@dataclass(frozen=True)
class PodPlace(WorkerPlace):
    """A pod of a manifest, which Kubernetes starts."""

    def open_channel(self) -> WorkerChannel:
        raise UsageProblem(f"{self.name} is started by Kubernetes: give --manifest kubernetes, or other --workers")


def parse_workers(words: Sequence[str], worker_command: str | None = None, threads: int = 1) -> tuple[WorkerPlace, ...]:
    """Parses the values of ``--workers``. ``worker_command`` is the command ``mcpace`` of the hosts, and ``threads``
    are those of each worker.

    Raises :class:`UsageProblem` for text of any other form.
    """
    found: list[WorkerPlace] = []
    has_hosts = False
    for word in words:
        kind, _, value = word.partition(":")
        if kind == "local" and re.fullmatch(r"[0-9]{1,6}", value):
            command = (sys.executable, "-m", "mcpace", WORKER_COMMAND)
            found += [ProcessPlace("local", True, command)] * _worker_count(word, value)
        elif kind == "pods" and re.fullmatch(r"[0-9]{1,6}", value):
            found += [PodPlace("pod", False)] * _worker_count(word, value)
        elif kind == "ray" and (match := RAY.fullmatch(value)):
            place = RayPlace("ray", False, match["address"] or match["alone"] or "auto", threads)
            found += [place] * _worker_count(word, match["count"] or "1")
        elif kind == "ssh" and value:
            has_hosts = True
            found += [_ssh_place(word, host.strip(), _remote_command(worker_command)) for host in value.split(",")]
        elif kind == "tcp" and value:
            found += [_tcp_place(word, address.strip()) for address in value.split(",")]
        else:
            raise UsageProblem(f"--workers {word!r} can't be read: {FORMS}")
    if worker_command is not None and not has_hosts:
        raise UsageProblem("--worker-command is the command of hosts: give --workers ssh:HOST, too")
    if len({place.address for place in found if isinstance(place, RayPlace)}) > 1:
        raise UsageProblem("--workers: one load uses one Ray cluster: give the same ADDRESS to all of ray:N@ADDRESS")
    if len(found) > MOST_WORKERS:
        raise UsageProblem(f"--workers: at most {MOST_WORKERS} workers, not {len(found)}")
    return tuple(_with_own_names(found))


def _worker_count(word: str, text: str) -> int:
    if not 1 <= int(text) <= MOST_WORKERS:
        raise UsageProblem(f"--workers {word!r}: there may be from 1 to {MOST_WORKERS} workers")
    return int(text)


def _with_own_names(places: Sequence[WorkerPlace]) -> Iterator[WorkerPlace]:
    """Numbers the places: a host may have several workers."""
    count: Counter[str] = Counter()
    for place in places:
        count[place.name] += 1
        is_first = count[place.name] == 1
        is_alone = is_first and not place.is_local and not isinstance(place, (RayPlace, PodPlace))
        yield place if is_alone else replace(place, name=f"{place.name} {count[place.name]}")


def _remote_command(text: str | None) -> str:
    """The command of the worker as text for the shell of a host, with each word quoted."""
    try:
        words = shlex.split(text) if text is not None else ["mcpace"]
    except ValueError as error:
        raise UsageProblem(f"--worker-command {text!r} can't be split into words: {error}") from error
    if not words:
        raise UsageProblem("--worker-command is empty: name the command mcpace of the hosts")
    return shlex.join([*words, WORKER_COMMAND])


def _ssh_place(word: str, host: str, remote: str) -> WorkerPlace:
    match = _match_host(word, host)
    address = match["host"].strip("[]")
    destination = f"{match['user']}@{address}" if match["user"] else address
    options = [part for option in SSH_OPTIONS for part in ("-o", option)]
    port = ["-p", match["port"]] if match["port"] else []
    return ProcessPlace(f"ssh {host}", False, ("ssh", "-T", *options, *port, "--", destination, remote))


def _tcp_place(word: str, host: str) -> WorkerPlace:
    match = _match_host(word, host)
    if match["user"]:
        raise UsageProblem(f"--workers {word!r}: a worker that listens has no users: write tcp:HOST:PORT")
    try:
        token = read_worker_token()
    except ValueError as error:
        raise UsageProblem(f"--workers {word!r}: {error}") from error
    return TcpPlace(f"tcp {host}", False, match["host"].strip("[]"), int(match["port"] or DEFAULT_PORT), token)


def _match_host(word: str, host: str) -> re.Match[str]:
    match = DESTINATION.fullmatch(host)
    if match is None or (match["port"] and not 1 <= int(match["port"]) <= 65_535):
        raise UsageProblem(f"--workers {word!r}: {host!r} is no host; {FORMS}")
    return match
