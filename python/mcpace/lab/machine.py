"""Description of this machine for comparing Runs, and creation of a new Run."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mcpace import __version__
from mcpace.report.model.run import Kind, Machine, Run
from mcpace.system.processors import memory_bytes, usable_cores


def new_run(kind: Kind, options: dict[str, Any]) -> Run:
    """Returns an empty Run of this machine that starts now."""
    return Run(kind=kind, started=wall_clock(), machine=describe_machine(), mcpace=__version__, options=options)


def describe_machine() -> Machine:
    """Describes this machine. Names no host and no user."""
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        cpu=_cpu_model(),
        cores=len(usable_cores()),
        memory_bytes=memory_bytes(),
        python=platform.python_version(),
    )


def wall_clock() -> str:
    """The current time as RFC 3339 in UTC with whole seconds."""
    return datetime.now(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
