"""Imports every module of mcpace as on another system, or runs a command of mcpace so.

Usage: ``python -m support.other_system SYSTEM ARGUMENTS...``, where SYSTEM is ``win32`` or ``darwin``. The standard
library and the third-party packages are loaded before, as they are on Linux; the names that the other system lacks are
then removed, and its own are added. This shows what mcpace itself needs, and is no substitute for a run on that system.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import select
import signal
import socket
import sys
import types

LINUX_ONLY = {
    os: ("sched_getaffinity", "sched_setaffinity", "pidfd_open", "waitid", "memfd_create", "eventfd"),
    signal: ("pidfd_send_signal",),
    select: ("epoll",),
    socket: ("AF_NETLINK", "TCP_INFO", "TCP_QUICKACK"),
}
POSIX_ONLY = {
    os: (
        "CLD_DUMPED", "CLD_EXITED", "CLD_KILLED", "O_ASYNC", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK",
        "chown", "fchmod", "fchown", "fork", "getegid", "geteuid", "getgid", "getloadavg", "getpgid", "getpgrp",
        "getppid", "getuid", "killpg", "mkfifo", "pread", "pwrite", "register_at_fork", "setpgid", "setsid", "sysconf",
        "uname", "wait", "wait3", "wait4",
    ),
    signal: (
        "SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGSTOP", "SIGUSR1", "SIGUSR2",
        "pthread_sigmask", "setitimer", "sigwait",
    ),
    select: ("poll",),
    socket: ("AF_UNIX", "SO_REUSEPORT"),
}  # fmt: skip
POSIX_MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
WINDOWS_ONLY = {
    os: {"O_BINARY": 0, "O_NOINHERIT": 0},
    signal: {"SIGBREAK": signal.SIGTERM, "CTRL_BREAK_EVENT": signal.SIGTERM},
}

# Programs, and modules that run in other interpreters.
LEFT_OUT = (
    "mcpace.adapters",
    "mcpace.lab.layers.worker",
    "mcpace.lab.inside.start",
    "mcpace.lab.load.workers.ray_channel",  # Ray is an extra that the tests do without.
    "mcpace._core",
)


def own_modules() -> list[str]:
    """Names of the modules of mcpace."""
    import mcpace

    names = [found.name for found in pkgutil.walk_packages(mcpace.__path__, "mcpace.", onerror=_raise_error)]
    return [name for name in names if not name.startswith(LEFT_OUT) and not name.endswith(".__main__")]


def _raise_error(name: str) -> None:
    raise ImportError(name)


def become(system: str) -> None:
    """Removes what the system lacks, and adds what it has."""
    sys.platform = system
    removed = [LINUX_ONLY, POSIX_ONLY] if system == "win32" else [LINUX_ONLY]
    for module, name in ((module, name) for table in removed for module, names in table.items() for name in names):
        if hasattr(module, name):
            delattr(module, name)
    if system == "win32":
        for module, values in WINDOWS_ONLY.items():
            for name, value in values.items():
                setattr(module, name, value)
        for name in POSIX_MODULES:
            sys.modules[name] = None  # type: ignore[assignment]  # an import of it fails
        msvcrt = types.ModuleType("msvcrt")
        msvcrt.__dict__.update(LK_NBLCK=2, locking=lambda *_: None)
        sys.modules["msvcrt"] = msvcrt


def set_up_django() -> None:
    """Lets the modules of ``mcpace.django`` be imported outside of a project."""
    import django
    from django.conf import settings

    settings.configure(INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"])
    django.setup()


def main() -> None:
    """Prints the number of modules that were imported, or runs the command."""
    system, *arguments = sys.argv[1:]
    set_up_django()
    names = own_modules()
    for name in names:
        importlib.import_module(name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "mcpace" and name != "mcpace._core"]:
        del sys.modules[name]
    become(system)
    if arguments:
        sys.argv = ["mcpace", *arguments]
        from mcpace.cli.main import main as run_command

        run_command()
        return
    for name in names:
        importlib.import_module(name)
    print(len(names))


if __name__ == "__main__":
    main()
