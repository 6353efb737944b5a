"""Child processes that can't outlive this process: each leads a process group, which is ended in bounded time.

A descendant may leave its group: :mod:`.strays` finds and ends it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpace.lab.paths import neutral_folder
from mcpace.lab.processes.interruption import is_hurried
from mcpace.system.process_groups import KILLED, Child, has_exited, kill_group, signal_group, start_group

GRACE_S = 4.0
"""Seconds from SIGTERM to SIGKILL: time for a client program to end the stdio server that it started."""
LONGEST_PAUSE_S = 0.05
SHARED = ("PATH", "LANG")
"""Variables that a command of another user gets."""


@dataclass(frozen=True)
class Done:
    code: int
    stdout: str
    stderr: str
    timed_out: bool = False


def run_child(
    command: list[str],
    limit_s: float,
    *,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    user: tuple[int, int] | None = None,
) -> Done:
    """Runs a command to its end. Ends its whole process group on time-out, Ctrl-C and any other exception.

    A command that can't be started is reported as exit code 127, with the reason as its stderr. `cwd` is the neutral
    folder unless given; `env` is added to this process's environment. `user` has the user and the group that root runs
    the command as, in place of its own; that user can read the command's environment, so it gets PATH and LANG only.
    """
    inherited = dict(os.environ) if user is None else {name: os.environ[name] for name in SHARED if name in os.environ}
    identity: dict[str, Any] = {} if user is None else {"user": user[0], "group": user[1], "extra_groups": []}
    try:
        child = start_group(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd=cwd or neutral_folder(),
            env={**inherited, **(env or {})},
            **identity,
        )
    except OSError as error:
        return Done(127, "", f"{command[0]}: {error.strerror}")
    with child:
        try:
            stdout, stderr = child.communicate(timeout=limit_s)
            return Done(child.returncode, stdout, stderr)
        except subprocess.TimeoutExpired:
            end_group(child)
            return Done(-KILLED, "", "", timed_out=True)
        except BaseException:
            end_group(child)
            raise


def end_group(child: Child, grace_s: float = GRACE_S) -> None:
    """Ends a child that leads a process group, and the rest of the group. Harmless after the child was reaped.

    The leader is reaped last: until then, its id, which is also the group's, can't be reused.
    """
    if child.returncode is not None:
        return
    try:
        signal_group(child, signal.SIGTERM)
        wait_exit(child, grace_s)
    finally:
        # SIGKILL is sent even after the leader's exit: its children may have ignored SIGTERM.
        kill_group(child)
        child.wait()


def wait_exit(child: Child, limit_s: float) -> bool:
    """Waits for a child's exit without reaping it. Returns whether the child exited. Doesn't wait when hurried."""
    deadline = time.monotonic() + limit_s
    pause_s = 0.001
    while not has_exited(child):
        if time.monotonic() > deadline or is_hurried():
            return False
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    return True
