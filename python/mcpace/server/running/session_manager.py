"""The session manager of a mounted server, by which a host application starts and ends it.

The official SDK requires ``async with server.session_manager.run(): …`` in the host's lifespan. It is optional here,
since a mounted server starts with its first request; with it, a failing lifespan is known at the start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


class SessionManager:
    """Starts and ends an ASGI application by ASGI's lifespan protocol."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def handle_request(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request of the host's on any path."""
        await self._application.answer(scope, receive, send, self._application.path)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Runs the application within the block. Raises ``RuntimeError`` if it can't start."""
        said: asyncio.Queue[str] = asyncio.Queue()
        answered: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

        async def receive() -> dict[str, str]:
            return {"type": f"lifespan.{await said.get()}"}

        living = asyncio.create_task(self._application({"type": "lifespan"}, receive, answered.put))
        try:
            await self._send_event("startup", said, answered, living)
            yield
            await self._send_event("shutdown", said, answered, living)
        finally:
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)

    async def _send_event(
        self,
        what: str,
        said: asyncio.Queue[str],
        answered: asyncio.Queue[dict[str, Any]],
        living: asyncio.Task[None],
    ) -> None:
        said.put_nowait(what)
        answer = asyncio.create_task(answered.get())
        await asyncio.wait({answer, living}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
            raise RuntimeError(f"the server's {what} ended without an answer")
        if answer.result()["type"] != f"lifespan.{what}.complete":
            raise RuntimeError(f"the server's {what} failed: {answer.result().get('message', '')}")
