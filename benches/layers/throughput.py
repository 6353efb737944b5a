"""Requests a second: ``manage.py mcpace`` beside djangorestframework-mcp-server on uvicorn and on gunicorn.

Both have one service and serializer, one process, sessions in memory, and no log line for each call. uvicorn has uvloop
and httptools, gunicorn has threads (its other worker closes each connection). ``mcpace load`` on the same machine makes
the load. The processor time that it uses slows down the faster server first.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import free_port, running

from support.layering import DRF_SERVED, MCPACE_DJANGO, SERVERS, Served

USERS = 16
THREADS = 8
TARGET = 20
LOAD_LIMIT_S = 120
DRF_NAME = "drf-mcp-0.54.0"


@dataclass(frozen=True)
class Way:
    """One way to serve the tool."""

    name: str
    by: str
    served: Served
    words: Callable[[int], list[str]]
    environment: dict[str, str]
    path: str
    says: str | None = None

    @contextmanager
    def running(self) -> Iterator[str]:
        """Runs the server and yields its URL."""
        port = 0 if self.says else free_port()
        command = [self.served.interpreter(), "-W", "ignore", "-m", *self.words(port)]
        with running(command, {**self.served.environment, **self.environment}, SERVERS, self.says, port) as port:
            yield f"http://127.0.0.1:{port}{self.path}"


def _drf(by: str, urls: str, words: Callable[[int], list[str]]) -> Way:
    return Way(DRF_NAME, by, DRF_SERVED, words, {"ROOT_URLCONF": "drf_urls", "MCP_URLS": urls}, "/mcp/")


OURS = Way(
    "mcpace-django",
    "manage.py mcpace",
    MCPACE_DJANGO,
    lambda _: ["django", "mcpace", "on_mcpace_django:server", "--port", "0"],
    {"DJANGO_SETTINGS_MODULE": "mcpace_settings"},
    "/mcp",
    says=r"serving .*:(\d+)/",
)
THEIRS = (
    _drf(
        "uvicorn",
        "async_urls",
        lambda port: [
            *("uvicorn", "--factory", "django.core.asgi:get_asgi_application", "--lifespan", "off"),
            *("--port", str(port), "--log-level", "warning", "--no-access-log"),
        ],
    ),
    _drf(
        "gunicorn",
        "urls",
        lambda port: [
            *("gunicorn", "django.core.wsgi:get_wsgi_application()", "--bind", f"127.0.0.1:{port}"),
            *("--worker-class", "gthread", "--threads", str(THREADS), "--log-level", "warning"),
        ],
    ),
)
WAYS = (OURS, *THEIRS)

Turns = dict[str, list[float]]
"""Requests a second of each turn, by way of serving."""


def measure(turns: int, seconds: float, say: Callable[[str], None]) -> Turns:
    """Measures all ways in turns, there and back. Each server is started once, and is idle during other turns."""
    found: Turns = {way.by: [] for way in WAYS}
    with ExitStack() as stack:
        urls = {way.by: stack.enter_context(way.running()) for way in WAYS}
        for number in range(turns):
            for way in WAYS if number % 2 == 0 else WAYS[::-1]:
                say(f"turn {number + 1}/{turns} · {way.by}")
                found[way.by].append(_loaded(urls[way.by], seconds, way.by))
    return found


def rows(turns: Turns) -> list[dict[str, Any]]:
    """Rows with each way over all turns. ``median_s`` is the inverse of the throughput, not a latency."""
    return [
        {
            "name": way.name,
            "layer": "served",
            "by": way.by,
            "users": USERS,
            "median_s": 1 / statistics.median(turns[way.by]),
            "low_s": 1 / max(turns[way.by]),
            "high_s": 1 / min(turns[way.by]),
            "requests_per_s": statistics.median(turns[way.by]),
        }
        for way in WAYS
    ]


def target(turns: Turns) -> dict[str, Any]:
    """The target: the ratio to the faster configuration of djangorestframework-mcp-server."""
    better = max(THEIRS, key=lambda way: statistics.median(turns[way.by])).by
    ratio = statistics.median(ours / theirs for ours, theirs in zip(turns[OURS.by], turns[better], strict=True))
    what = f"requests a second: `manage.py mcpace` ÷ djangorestframework-mcp-server 0.54.0 on {better}"
    return {"what": what, "at_least": TARGET, "unit": "ratio", "actual": ratio, "met": ratio >= TARGET}


def _loaded(url: str, seconds: float, by: str) -> float:
    command = [Path(MCPACE_DJANGO.interpreter()).with_name("mcpace"), "load", url, "--mix", "double=1"]
    command += ["--args", 'double={"n": 21}', "--vus", str(USERS), "--duration", f"{round(seconds * 1000)}ms"]
    command += ["--warm-up", f"{round(min(1.0, seconds) * 1000)}ms", "--json"]
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=LOAD_LIMIT_S + seconds, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{by}: {done.stderr.strip()}")
    [case] = json.loads(done.stdout)["cases"]
    if case["errors"] or not case["throughput_rps"]:
        raise RuntimeError(f"{by}: {case['errors']} of its calls failed")
    rps: float = case["throughput_rps"]
    return rps
