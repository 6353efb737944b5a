"""Releases whose calls return long after the complete result has arrived, each compared with a quick release."""

from __future__ import annotations

from typing import Any

import pytest

from mcpace.lab import targets
from mcpace.lab.clients.plan import Plan, Settings
from mcpace.lab.clients.run_clients import run_clients
from mcpace.lab.progress import Silent
from mcpace.lab.targets import Tool
from support.finding_scenes import Receive, Scope, Send, answer_request, patient
from support.finding_scenes import serve_app as asgi

pytestmark = [pytest.mark.network, pytest.mark.proof]

MEMBERS = "abcde"
ITEM = {"type": "object", "properties": {name: {"type": "integer"} for name in MEMBERS}, "required": list(MEMBERS)}
SCHEMA = {"type": "object", "properties": {"items": {"type": "array", "items": ITEM}}, "required": ["items"]}
ITEMS = [dict.fromkeys(MEMBERS, number) for number in range(8_000)]


class Reporting:
    """A server whose tool answers with many items, and says by a schema what they are."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await answer_request(scope, receive, send, self.result)

    async def result(self, asked: dict[str, Any]) -> dict[str, Any]:
        match asked["method"]:
            case "initialize":
                server = {"name": "reporting", "version": "1"}
                revision = asked["params"]["protocolVersion"]
                return {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": server}
            case "tools/list":
                tool = {"name": "report", "inputSchema": {"type": "object"}, "outputSchema": SCHEMA}
                return {"tools": [{**tool, "annotations": {"readOnlyHint": True}}]}
            case _:
                return {"content": [{"type": "text", "text": "done"}], "structuredContent": {"items": ITEMS}}


@patient
def test_python_mcp_checks_a_large_result_before_it_returns() -> None:
    """By its schema and piece by piece, most of a second; typescript has schemas compiled."""
    slow, quick = "python@1.30.0", "typescript@1.32.2"
    with asgi(Reporting()) as url:
        plan = Plan((slow, quick), (targets.parse_target(url, tool=Tool("report")),), Settings(trials=4))
        run = run_clients(plan, Silent())
    calls = {case.subject.label(): case for case in run.cases if case.operation == "call"}
    assert all(len(case.trials_s) == 4 for case in calls.values())
    found = {subject: {finding.code for finding in case.findings} for subject, case in calls.items()}
    assert "late-delivery" in found[slow]
    assert "late-delivery" not in found[quick]
