"""Tools that run as tasks: the extension ``io.modelcontextprotocol/tasks`` of 2026-07-28.

The names are FastMCP's. The compiled part runs the tasks: it keeps their results, puts their questions to the client
and ends them when their time is over.

Design constraint: descriptions only, checked at registration.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, get_args

from mcpace.server.errors import RegistrationError

TaskMode = Literal["forbidden", "optional", "required", "on-demand"]


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """How a tool runs as a task. ``task=True`` is ``TaskConfig()``."""

    mode: TaskMode = "optional"
    """``optional`` runs a task for clients that declare the extension, and a call for all others. ``required`` refuses
    clients that don't declare it. ``on-demand`` runs a call until the function awaits ``ctx.begin_task()``."""
    poll_interval: timedelta = timedelta(seconds=1)
    """The interval at which clients are asked to poll the task."""
    ttl: timedelta = timedelta(minutes=15)
    """The lifetime of the task from its creation. Work that takes longer is cancelled."""

    def __post_init__(self) -> None:
        if self.mode not in get_args(TaskMode):
            raise RegistrationError(f"TaskConfig(mode={self.mode!r}): there are {', '.join(get_args(TaskMode))}")
        for name, time in (("poll_interval", self.poll_interval), ("ttl", self.ttl)):
            if not isinstance(time, timedelta) or time <= timedelta():
                raise RegistrationError(f"TaskConfig({name}={time!r}): it takes a timedelta of more than 0 seconds")

    def registered(self) -> dict[str, Any]:
        """The keywords for the compiled part; none for a tool without tasks."""
        if self.mode == "forbidden":
            return {}
        return {
            "task": self.mode,
            "task_ttl_s": self.ttl.total_seconds(),
            "task_poll_interval_s": self.poll_interval.total_seconds(),
        }


FORBIDDEN = TaskConfig(mode="forbidden")


def task_config(given: Any, tool: str, *, is_async: bool) -> TaskConfig:
    """The configuration for a tool's ``task=``. FastMCP's ``TaskConfig`` is accepted, too. Raises ``RegistrationError``
    if the function can't run as a task.
    """
    if given is None or isinstance(given, bool):
        return TaskConfig() if given else FORBIDDEN
    config: TaskConfig
    if isinstance(given, TaskConfig):
        config = given
    else:
        if not hasattr(given, "mode") or not hasattr(given, "poll_interval"):
            raise RegistrationError(f"task={given!r} of tool {tool!r}: it takes True, False or a TaskConfig")
        config = TaskConfig(mode=given.mode, poll_interval=given.poll_interval)
    if config.mode == "on-demand" and not is_async:
        raise RegistrationError(
            f"Tool {tool!r} can't become a task on demand: only an async function can await ctx.begin_task(). "
            "Define it with async def, or register it with task=True"
        )
    return config
