"""Agent of the official Python SDK 2.x that follows a script: the argument is JSON, and so is the output.

Script: ``command`` and ``folder`` of the server, ``mode`` of the client, ``answer`` to the server's questions
(``allow``, ``deny``, ``decline``, or ``null`` for a client without elicitation), and ``steps``. A step is a list of
calls that are made together. A call has ``name`` and ``arguments``. With ``cancel_after``, the path of a named pipe, it
is cancelled when a process has written its id there. Output: ``tools``, ``questions``, ``survivors`` (processes of
cancelled calls that still run after the last step), and for each call ``is_error``, ``text``, ``structured``, ``bytes``
and ``progress``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult

PROCESSES: list[int] = []
"""Processes of cancelled calls."""


async def main(script: dict[str, Any]) -> dict[str, Any]:
    questions: list[str] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        questions.append(params.message)
        if script["answer"] == "decline":
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"allow": script["answer"] == "allow"})

    server = StdioServerParameters(
        command=script["command"][0], args=script["command"][1:], cwd=script["folder"], env=script["environment"]
    )
    asking = answer if script["answer"] else None
    async with Client(server, mode=script["mode"], elicitation_callback=asking) as client:
        tools = (await client.list_tools()).tools
        steps: list[Any] = [await asyncio.gather(*(call(client, one) for one in step)) for step in script["steps"]]
        survivors = [process for process in PROCESSES if Path(f"/proc/{process}").exists()]
    return {
        "tools": {tool.name: tool.model_dump(by_alias=True, mode="json") for tool in tools},
        "questions": questions,
        "steps": steps,
        "survivors": survivors,
    }


async def call(client: Client, asked: dict[str, Any]) -> dict[str, Any]:
    progress: list[tuple[float, float | None, str | None]] = []

    async def on_progress(value: float, total: float | None, message: str | None) -> None:
        progress.append((value, total, message))

    running = asyncio.ensure_future(client.call_tool(asked["name"], asked["arguments"], progress_callback=on_progress))
    if pipe := asked.get("cancel_after"):
        PROCESSES.append(int(await asyncio.to_thread(Path(pipe).read_text)))
        running.cancel()
        await asyncio.wait({running})
        return {"cancelled": running.cancelled()}
    result = await running
    return {
        "is_error": result.is_error,
        "text": " ".join(block.text for block in result.content),
        "structured": result.structured_content,
        "bytes": len(result.model_dump_json(by_alias=True, exclude_none=True).encode()),
        "progress": progress,
    }


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
