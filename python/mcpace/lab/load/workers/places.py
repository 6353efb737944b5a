"""Places of workers, parsed from ``--workers``: ``local:2``, ``ssh:host1,user@host2:2222``.

Design constraint: text of the user becomes single arguments of a program, and never shell text. ``ssh`` passes its last
argument to a shell on the host, so that argument is quoted here.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mcpace.lab.errors import UsageProblem

MOST_WORKERS = 256
FORMS = "write local:N, for N processes on this machine, or ssh:HOST,USER@HOST:PORT"
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


@dataclass(frozen=True)
class WorkerPlace:
    """One place, and the command that starts the worker there."""

    name: str
    command: tuple[str, ...]
    is_local: bool


def parse_workers(words: Sequence[str], worker_command: str | None = None) -> tuple[WorkerPlace, ...]:
    """Parses the values of ``--workers``. ``worker_command`` is the command ``mcpace`` of the hosts.

    Raises :class:`UsageProblem` for text of any other form.
    """
    found: list[WorkerPlace] = []
    has_hosts = False
    for word in words:
        kind, _, value = word.partition(":")
        if kind == "local" and re.fullmatch(r"[0-9]{1,6}", value):
            count = int(value)
            if not 1 <= count <= MOST_WORKERS:
                raise UsageProblem(f"--workers {word!r}: there may be from 1 to {MOST_WORKERS} workers")
            command = (sys.executable, "-m", "mcpace", WORKER_COMMAND)
            found += [WorkerPlace("local", command, is_local=True)] * count
        elif kind == "ssh" and value:
            has_hosts = True
            found += [_ssh_place(word, host.strip(), _remote_command(worker_command)) for host in value.split(",")]
        else:
            raise UsageProblem(f"--workers {word!r} can't be read: {FORMS}")
    if worker_command is not None and not has_hosts:
        raise UsageProblem("--worker-command is the command of hosts: give --workers ssh:HOST, too")
    if len(found) > MOST_WORKERS:
        raise UsageProblem(f"--workers: at most {MOST_WORKERS} workers, not {len(found)}")
    return tuple(_with_own_names(found))


def _with_own_names(places: Sequence[WorkerPlace]) -> Iterator[WorkerPlace]:
    """Numbers the places: a host may have several workers."""
    count: Counter[str] = Counter()
    for place in places:
        count[place.name] += 1
        is_first = count[place.name] == 1
        yield place if is_first and not place.is_local else replace(place, name=f"{place.name} {count[place.name]}")


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
    match = DESTINATION.fullmatch(host)
    if match is None or (match["port"] and not 1 <= int(match["port"]) <= 65_535):
        raise UsageProblem(f"--workers {word!r}: {host!r} is no host; {FORMS}")
    address = match["host"].strip("[]")
    destination = f"{match['user']}@{address}" if match["user"] else address
    options = [part for option in SSH_OPTIONS for part in ("-o", option)]
    port = ["-p", match["port"]] if match["port"] else []
    return WorkerPlace(f"ssh {host}", ("ssh", "-T", *options, *port, "--", destination, remote), is_local=False)
