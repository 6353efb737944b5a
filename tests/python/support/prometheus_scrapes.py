"""Scrapes of ``/metrics`` as Prometheus makes them, and the dashboard for Grafana that shows them."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from pathlib import Path
from typing import Any

from support.commands import LIMIT_S

DASHBOARD = Path(__file__).parents[3] / "packaging" / "grafana" / "mcp-servers.json"
NAME = "mcp_server_operation_duration_seconds"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
LOOK_PERIOD_S = 0.02
SCRAPED_LABELS = {"job", "instance"}
"""Labels that Prometheus adds."""


def scrape(port: int, accept: str = OPEN_METRICS) -> str:
    """The metrics in the format that ``accept`` asks for."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=LIMIT_S) as reply:
        assert reply.headers["Content-Type"].startswith(accept.partition(";")[0])
        return str(reply.read().decode())


def await_metric(port: int, line: str) -> str:
    """The metrics, in Prometheus' own format, once they have this line."""
    deadline = time.monotonic() + LIMIT_S
    while line not in (text := scrape(port, "text/plain")).splitlines():
        assert time.monotonic() < deadline, (line, text)
        time.sleep(LOOK_PERIOD_S)
    return text


def check_dashboard(plain: str, *, of_recorder: bool) -> None:
    """Checks that the dashboard asks for metrics and labels of a scrape in Prometheus' own format.

    A server has no metrics of recorders, which are in the panels below a row of their own.
    """
    held = set(re.findall(r"^(\w+)(?:{| )", plain, re.M))
    labels = {*re.findall(r'(\w+)="', plain), *SCRAPED_LABELS}
    expressions = _expressions()
    if not of_recorder:
        expressions = [one for one in expressions if "mcpace_recorder_" not in one]
    assert len(expressions) >= (18 if of_recorder else 10)
    for expression in expressions:
        names = set(re.findall(r"\b(?:mcp|process)\w*_\w+(?=[{,])", expression.replace("mcp_method_name", "")))
        assert names and names <= held, (expression, names - held)
        grouped = {name for names in re.findall(r"by \((.*?)\)", expression) for name in names.split(", ")}
        assert grouped <= labels, (expression, grouped - labels)
        assert set(re.findall(r"(\w+)(?:=~|!=)", expression)) <= labels, expression


def _expressions() -> list[str]:
    dashboard: dict[str, Any] = json.loads(DASHBOARD.read_text())
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    return [*found, *(one["definition"] for one in dashboard["templating"]["list"] if "definition" in one)]
