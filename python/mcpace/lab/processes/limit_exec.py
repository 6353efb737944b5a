"""Runs a command with fewer processors, and inside a control group: ``python limit_exec.py CORES GROUP COMMAND...``

Both must be in force before the command begins, since runtimes count their processors when they start. CORES is a list
such as ``0,1``, or ``-`` for all; GROUP is a folder of a cgroup v2 hierarchy, or ``-`` for none.

Design constraint: a script of the standard library that needs none of mcpace, so that it starts at once; the command
takes its place, with the same process id, pipes and environment.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Exits with code 126 where the limits can't be applied, and 125 where the command can't be started."""
    cores, group, *command = sys.argv[1:]
    if sys.platform == "linux":
        # A server is stopped between its rounds, and would not see the end of its stdin if mcpace were killed.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    try:
        if sys.platform != "linux" and (cores, group) != ("-", "-"):
            raise OSError(f"limits need Linux, and this is {sys.platform}")
        if group != "-":
            with open(os.path.join(group, "cgroup.procs"), "w") as procs:  # noqa: PTH123, PTH118 - pathlib is slow to import
                procs.write("0")
        if cores != "-" and sys.platform == "linux":
            os.sched_setaffinity(0, [int(core) for core in cores.split(",")])
    except OSError as error:
        print(f"mcpace: the program can't be confined: {error}", file=sys.stderr)
        sys.exit(126)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]} can't be started: {error.strerror}", file=sys.stderr)
        sys.exit(125)


if __name__ == "__main__":
    main()
