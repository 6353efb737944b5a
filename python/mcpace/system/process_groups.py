"""A program and the processes that it starts, which are signalled and killed together.

Linux and macOS have process groups. Windows has job objects, whose processes are killed together, and one signal,
Ctrl-Break, which most programs take as the request to end.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

Child = subprocess.Popen[str] | subprocess.Popen[bytes]

KILLED = 9
"""Number of the signal that kills a process (SIGKILL)."""

if TYPE_CHECKING:
    from mcpace import _core

if sys.platform == "win32":
    ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGBREAK)
    """Signals with which users and supervisors ask this process to end."""
    SYNCHRONIZE = 0x100000
    WAIT_TIMEOUT = 0x102
    _jobs: WeakKeyDictionary[Child, _core.JobObject] = WeakKeyDictionary()
else:
    ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    """Signals with which users and supervisors ask this process to end."""


def group_options(*, private_files: bool = False) -> dict[str, Any]:
    """Options of :class:`subprocess.Popen` that let the program lead a group. :func:`join_group` follows the start.

    ``private_files``: other users can't read the files that the program makes. On Windows the folder decides.
    """
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True} | ({"umask": 0o077} if private_files else {})


def join_group(child: Child) -> None:
    """Puts a program that was just started into a group of its own, where :func:`group_options` alone doesn't."""
    if sys.platform == "win32":
        from mcpace import _core

        job = _core.JobObject()
        job.add(int(child._handle))  # type: ignore[union-attr]
        _jobs[child] = job


def start_group(command: list[str], **options: Any) -> subprocess.Popen[Any]:
    """Starts a program that leads a group, with the options of :class:`subprocess.Popen`. Raises :class:`OSError`."""
    child = subprocess.Popen(command, **options, **group_options())
    try:
        join_group(child)
    except BaseException:
        child.kill()
        child.wait()
        raise
    return child


def signal_group(child: Child, number: signal.Signals) -> None:
    """Sends a signal to the group of a child. Harmless where the group is gone.

    On Windows, SIGINT and SIGTERM are Ctrl-Break, and other signals are refused with :class:`NotImplementedError`.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            if number not in ENDING:
                raise NotImplementedError(f"Windows can't send {number.name} to a program")
            child.send_signal(signal.CTRL_BREAK_EVENT)
        else:
            os.killpg(child.pid, number)


def ask_to_end(child: Child) -> None:
    """Asks a child, without the rest of its group, to end: SIGTERM, or Ctrl-Break on Windows."""
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "win32":
            child.send_signal(signal.CTRL_BREAK_EVENT)
        else:
            child.send_signal(signal.SIGTERM)


def pause_group(child: Child) -> None:
    """Stops the group of a child until :func:`resume_group` (SIGSTOP).

    Raises :class:`NotImplementedError` on Windows.
    """
    if sys.platform == "win32":
        raise NotImplementedError("Windows can't stop a program and continue it")
    signal_group(child, signal.SIGSTOP)


def resume_group(child: Child) -> None:
    """Continues the group of a child (SIGCONT). Raises :class:`NotImplementedError` on Windows."""
    if sys.platform == "win32":
        raise NotImplementedError("Windows can't stop a program and continue it")
    signal_group(child, signal.SIGCONT)


def kill_group(child: Child) -> None:
    """Kills a child and the processes of its group. Harmless where the group is gone."""
    if sys.platform == "win32":
        if (job := _jobs.pop(child, None)) is not None:
            job.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)


def ask_this_process_to_end() -> None:
    """Asks this process to end, as a supervisor would: SIGTERM, or what Ctrl-C does on Windows."""
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        os.kill(os.getpid(), signal.SIGTERM)


def kill_this_process() -> None:
    """Kills this process at once."""
    if sys.platform == "win32":
        os.kill(os.getpid(), signal.SIGTERM)  # TerminateProcess
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def has_exited(child: Child) -> bool:
    """Whether the child has exited. Doesn't reap it: until then, its id, which is also its group's, can't be reused.

    The stop of a child whose stacks are sampled is no exit.
    """
    if child.returncode is not None:
        return True
    if sys.platform == "win32":
        return child.poll() is not None  # the open handle keeps the id
    if sys.platform == "darwin":
        return _has_exited_by_kqueue(child.pid)
    state = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return state is not None and state.si_code in (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED)


def _has_exited_by_kqueue(pid: int) -> bool:
    """Whether a process has exited, by kqueue(2): ``waitid`` is missing before Python 3.13."""
    if sys.platform == "darwin":
        event = select.kevent(
            pid,
            filter=select.KQ_FILTER_PROC,
            flags=select.KQ_EV_ADD | select.KQ_EV_ONESHOT,
            fflags=select.KQ_NOTE_EXIT,
        )
        with contextlib.closing(select.kqueue()) as queue:
            try:
                return bool(queue.control([event], 1, 0))
            except ProcessLookupError:  # it has exited, and is not reaped yet
                return True
    raise NotImplementedError("only macOS has kqueue")


def is_alive(pid: int) -> bool:
    """Whether a process exists. A process that may not be signalled exists."""
    if sys.platform == "win32":
        # os.kill would end the process.
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.OpenProcess.restype = ctypes.c_void_p
        handle = kernel.OpenProcess(SYNCHRONIZE, False, pid)
        if not handle:
            return ctypes.get_last_error() == 5  # ERROR_ACCESS_DENIED
        try:
            return bool(kernel.WaitForSingleObject(ctypes.c_void_p(handle), 0) == WAIT_TIMEOUT)
        finally:
            kernel.CloseHandle(ctypes.c_void_p(handle))
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
