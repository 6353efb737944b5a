"""A tool that closes the stream of its call: the client resumes the stream for the answer."""

import asyncio

from mcp.server.fastmcp import Context, FastMCP
from mcp.server.streamable_http import EventMessage, EventStore


class Events(EventStore):
    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id, send_callback):
        last = int(last_event_id)
        stream = self.events[last - 1][0]
        for number, (stream_id, message) in enumerate(self.events, 1):
            if number > last and stream_id == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


mcp = FastMCP("Resuming", event_store=Events())


@mcp.tool()
async def leave(ctx: Context) -> str:
    await ctx.info("leaving")
    await ctx.close_sse_stream()
    await asyncio.sleep(0.1)
    return "back"
