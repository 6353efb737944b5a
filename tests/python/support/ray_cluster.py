"""A Ray cluster of one node on loopback, and the ``mcpace`` of an environment with the extra ``ray``."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mcpace.lab.processes.process_usage import process_tree
from support.adoption import installed
from support.commands import closed_port

ROOT = Path(__file__).resolve().parents[3]
LOCK = ROOT / "tests" / "workers" / "ray.txt"
START_LIMIT_S = 180.0
END_LIMIT_S = 30.0
MEMORY = 100 * 1024 * 1024
ACTOR = "ray::WorkerActor"


@dataclass(frozen=True)
class RayCluster:
    """A running cluster."""

    address: str
    pid: int
    python: Path
    folder: Path

    def actors(self) -> set[int]:
        """Processes of the cluster's workers of mcpace."""
        return {pid for pid in process_tree(self.pid) if _title(pid).startswith(ACTOR)}


def _title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def variables() -> Mapping[str, str]:
    """The environment of the driver and of the nodes: Ray sends nothing, and mcpace is that of this checkout.

    Ray runs actors with a niceness of 15 by default.
    """
    own = {"PYTHONPATH": str(ROOT / "python"), "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    return {**os.environ, **own}


@contextmanager
def ray_cluster(processors: int) -> Iterator[RayCluster]:
    """Starts a cluster, and ends all of its processes."""
    python = installed("ray", LOCK)
    # The paths of Ray's sockets are long, and a path of a socket has a limit.
    folder = Path(tempfile.mkdtemp(prefix="ray"))
    address = f"127.0.0.1:{closed_port()}"
    words = ["start", "--head", "--block", "--node-ip-address=127.0.0.1", f"--port={address.rpartition(':')[2]}"]
    words += [f"--num-cpus={processors}", f"--object-store-memory={MEMORY}", f"--temp-dir={folder}"]
    words += ["--include-dashboard=false", "--disable-usage-stats"]
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [str(python.parent / "ray"), *words], env=variables(), cwd=folder, stdin=subprocess.DEVNULL,
            stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        check = [str(python), "-c", f"import ray; ray.init('{address}', log_to_driver=False)"]
        deadline = time.monotonic() + START_LIMIT_S
        while subprocess.run(check, env=variables(), cwd=folder, capture_output=True, check=False).returncode:
            assert process.poll() is None, (folder / "output").read_text()
            assert time.monotonic() < deadline, (folder / "output").read_text()
        yield RayCluster(address, process.pid, python, folder)
    finally:
        process.terminate()
        try:
            process.wait(END_LIMIT_S)
        finally:
            for pid in _processes_of(folder):
                os.kill(pid, signal.SIGKILL)
            process.kill()
            process.wait()
            shutil.rmtree(folder, ignore_errors=True)


def _processes_of(folder: Path) -> list[int]:
    """Processes whose command line or environment names the folder of the cluster."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            try:
                words = (place / "cmdline").read_bytes() + (place / "environ").read_bytes()
            except OSError:
                continue
            if os.fsencode(folder) in words:
                found.append(int(place.name))
    return found
