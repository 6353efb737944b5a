"""A real sshd on loopback, with keys of its own, and an ``ssh`` that knows it."""

from __future__ import annotations

import getpass
import os
import shlex
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mcpace.lab.environments.toolchains import PROGRAMS, find_command

LIMIT_S = 20.0
MISSING = PROGRAMS["sshd"].missing()
"""Commands that this machine lacks."""
HOST = "worker-host"


@dataclass(frozen=True)
class SshServer:
    """A running sshd."""

    port: int
    folder: Path
    """The folder of an ``ssh`` that reads the configuration of this server. It belongs at the front of PATH."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which commands find that ``ssh``."""
        return {"PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}"}


@contextmanager
def ssh_server(folder: Path) -> Iterator[SshServer]:
    """Starts an sshd for this user."""
    for name in ("host_key", "user_key"):
        generate = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(generate, check=True, timeout=LIMIT_S)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # Debian's service makes it
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder / 'host_key'}\nPidFile none\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {folder / 'user_key.pub'}\nPasswordAuthentication no\nPermitRootLogin yes\n"
    )
    key = (folder / "host_key.pub").read_text()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {key}")
    (folder / "ssh_config").write_text(
        f"Host {HOST}\n HostName 127.0.0.1\n Port {port}\n User {getpass.getuser()}\n"
        f" IdentityFile {folder / 'user_key'}\n IdentitiesOnly yes\n UserKnownHostsFile {folder / 'known_hosts'}\n"
    )
    shim = folder / "bin" / "ssh"
    shim.parent.mkdir()
    real = find_command("ssh")
    shim.write_text(f'#!/bin/sh\nexec {shlex.quote(str(real))} -F {shlex.quote(str(folder / "ssh_config"))} "$@"\n')
    shim.chmod(0o755)
    command = [str(find_command("sshd")), "-D", "-e", "-f", str(folder / "sshd_config")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            first = process.stderr.readline()
            assert "listening" in first, first + process.stderr.read()
            yield SshServer(port, shim.parent)
        finally:
            process.terminate()
            process.communicate(timeout=LIMIT_S)
