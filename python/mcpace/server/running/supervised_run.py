"""Serves a target from child processes: several workers, or one that starts again when a file changes."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcpace.server.running.addresses import Address, ReservedPort, check_workers
from mcpace.server.running.child import Child
from mcpace.server.running.reload import watch_files
from mcpace.server.running.settings import Settings
from mcpace.server.running.startup_message import print_startup
from mcpace.server.running.supervisor import WorkerPlan, supervise


def run_supervised(text: str, settings: Settings, arguments: Sequence[str]) -> int:
    """Serves ``MODULE:SERVER`` from child processes until this process is told to end. Returns the exit code."""
    if settings.workers > 1:
        check_workers()
    with contextlib.ExitStack() as held:
        changes = held.enter_context(watch_files(settings)) if settings.reload else None
        reserved = held.enter_context(contextlib.closing(ReservedPort(Address.resolved(settings.host, settings.port))))
        # Only this user may enter the folder. Workers forward requests to each other through sockets in it.
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="mcpace-"))
        order = {
            "target": text,
            "arguments": list(arguments),
            "settings": settings.to_json(),
            "address": [reserved.address.host, reserved.address.port],
            "family": [str(Path(folder) / str(number)) for number in range(1, settings.workers + 1)],
            "key": secrets.token_hex(32),
        }
        # -P: mcpace's modules are never imported from the current folder.
        command = [sys.executable, *_interpreter_flags(), "-P", "-m", "mcpace.server.running.worker"]

        def start(number: int) -> Child:
            return Child(number, command, json.dumps(order | {"number": number}))

        def on_ready(told: dict[str, Any]) -> None:
            print_startup(told, settings, reserved.address)

        return supervise(WorkerPlan(start, settings.workers, settings.graceful_timeout_s, on_ready, changes))


def _interpreter_flags() -> list[str]:
    """The flags that this interpreter was started with, as multiprocessing passes them on."""
    return list(subprocess._args_from_interpreter_flags())  # type: ignore[attr-defined]
