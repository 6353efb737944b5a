"""A real sshd on loopback, with keys of its own, and an ``ssh`` that knows it."""

from __future__ import annotations

import getpass
import os
import shlex
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from mcpace.lab.environments.toolchains import PROGRAMS, find_command

LIMIT_S = 20.0
MISSING = PROGRAMS["sshd"].missing()
"""Commands that this machine lacks."""
HOST = "worker-host"


@dataclass(frozen=True)
class SshHost:
    """A host that an ``ssh`` knows by a name."""

    name: str
    address: str
    enter_command: tuple[str, ...] = ()
    """The words before a command that is to run on this host."""


@dataclass(frozen=True)
class SshServer:
    """One running sshd for each host."""

    folder: Path
    """The folder of an ``ssh`` that reads the configuration of these servers. It belongs at the front of PATH."""
    processes: tuple[int, ...]

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which commands find that ``ssh``."""
        return {"PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}"}


@contextmanager
def ssh_server(folder: Path, hosts: Sequence[SshHost] = (SshHost(HOST, "127.0.0.1"),)) -> Iterator[SshServer]:
    """Starts an sshd for this user on each host."""
    for name in ("host_key", "user_key"):
        generate = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(generate, check=True, timeout=LIMIT_S)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # Debian's service makes it
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    key = (folder / "host_key.pub").read_text()
    (folder / "known_hosts").write_text("".join(f"[{host.address}]:{port} {key}" for host in hosts))
    (folder / "ssh_config").write_text(
        "".join(f"Host {host.name}\n HostName {host.address}\n" for host in hosts)
        + f"Host *\n Port {port}\n User {getpass.getuser()}\n"
        f" IdentityFile {folder / 'user_key'}\n IdentitiesOnly yes\n UserKnownHostsFile {folder / 'known_hosts'}\n"
    )
    shim = folder / "bin" / "ssh"
    shim.parent.mkdir()
    real = find_command("ssh")
    shim.write_text(f'#!/bin/sh\nexec {shlex.quote(str(real))} -F {shlex.quote(str(folder / "ssh_config"))} "$@"\n')
    shim.chmod(0o755)
    with ExitStack() as stack:
        processes = tuple(stack.enter_context(_start_sshd(folder, host, port)) for host in hosts)
        yield SshServer(shim.parent, processes)


@contextmanager
def _start_sshd(folder: Path, host: SshHost, port: int) -> Iterator[int]:
    configuration = folder / f"sshd_config_{host.name}"
    configuration.write_text(
        f"ListenAddress {host.address}:{port}\nHostKey {folder / 'host_key'}\nPidFile none\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {folder / 'user_key.pub'}\nPasswordAuthentication no\nPermitRootLogin yes\n"
    )
    command = [*host.enter_command, str(find_command("sshd")), "-D", "-e", "-f", str(configuration)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            first = process.stderr.readline()
            assert "listening" in first, first + process.stderr.read()
            yield process.pid
        finally:
            process.terminate()
            process.communicate(timeout=LIMIT_S)
