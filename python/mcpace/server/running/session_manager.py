"""What a host application needs of a mounted server: to begin it and to end it with itself.

The official SDK's way, ``async with server.session_manager.run(): …`` in the host's own lifespan. It isn't needed here,
since a mounted server begins with its first request; with it, a lifespan that fails is known at the start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


class SessionManager:
    """Begins and ends an ASGI application by ASGI's own lifespan protocol."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def handle_request(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request of the host's, whatever its path is."""
        await self._application.answer(scope, receive, send, self._application.path)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """The application lives within the block. Raises ``RuntimeError`` where it can't begin."""
        said: asyncio.Queue[str] = asyncio.Queue()
        answered: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

        async def receive() -> dict[str, str]:
            return {"type": f"lifespan.{await said.get()}"}

        living = asyncio.create_task(self._application({"type": "lifespan"}, receive, answered.put))
        try:
            await self._say("startup", said, answered, living)
            yield
            await self._say("shutdown", said, answered, living)
        finally:
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)

    async def _say(
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
