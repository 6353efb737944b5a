"""Adoption of other SDKs' servers: turns an unchanged server object of another SDK into one that the runner serves.

Design constraint: the object is not changed, and a client can't tell the difference. The runtime calls a tool itself
only if its reply is certainly equal; the SDK's own handlers answer all other requests, on the event loop. No module is
imported that the object's own module has not imported.

Supported: ``MCPServer`` (mcp 2.x), ``FastMCP`` (mcp 1.x), ``FastMCP`` (fastmcp 3 and 4), and low-level servers of mcp.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from mcpace.server.adopt.adopted_tools import Tools
from mcpace.server.adopt.http_options import options_of
from mcpace.server.adopt.sdk_settings import settings_of
from mcpace.server.adopt.server_kinds import Kind, is_2, kind_of, low_level
from mcpace.server.core.subscriptions import list_of, uri_of

if TYPE_CHECKING:
    from mcpace.server.adopt.official_common import Sdk
    from mcpace.server.running.prepared import Prepared

# Methods that the SDK's own handlers answer. The runtime answers `ping`, and sends notifications of changes.
DELEGATED = [
    "initialize",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
]

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


def adoptable(candidate: object) -> bool:
    """Whether :func:`adopt` accepts an object."""
    return kind_of(candidate) is not None


def adopt(server: Any) -> Prepared:
    """Prepares a server object of another SDK to be run. Raises ``TypeError`` for any other object."""
    kind = kind_of(server)
    if kind is None:
        raise TypeError(f"{type(server).__module__}.{type(server).__qualname__} is no server that can be adopted")
    from mcpace import _core
    from mcpace.server.running.prepared import Prepared

    low = low_level(server, kind)
    core = _core.Server(
        low.name,
        low.version or "",
        title=getattr(low, "title", None),
        description=getattr(low, "description", None),
        icons=_icons_json(low),
        instructions=low.instructions,
        website_url=low.website_url,
        keep_headers=True,
        open=True,
        revisions=None if is_2(low) else LEGACY,
    )
    sdk = _low_level_sdk(server, kind, low)
    core.delegate(sdk.exchange_loop.submit, DELEGATED)
    tools = Tools(server, kind, low, core)
    sdk.exchange_loop.after = tools.renew
    summary = tools.summary(f"{kind.value} ({_sdk_release(kind)})")
    settings, unused = settings_of(server, kind)
    return Prepared(
        core=core,
        name=low.name,
        tools=tools.count,
        resources=summary.resources + summary.templates,
        prompts=summary.prompts,
        lifespan=partial(_run_lifespan, sdk, getattr(server, "_subscriptions", None), core),
        options=options_of(server, kind),
        settings=settings,
        notes=(*summary.sentences(), *unused),
    )


@asynccontextmanager
async def _run_lifespan(sdk: Sdk, bus: Any, core: Any) -> AsyncIterator[None]:
    """Runs the SDK's lifespan, and notifies subscribed clients of the events on the SDK's bus."""

    def tell(event: Any) -> None:
        uri, changed = uri_of(event), list_of(event)
        if uri is not None:
            core.resource_updated(uri)
        elif changed is not None:
            core.list_changed(changed)

    async with sdk.lifespan():
        unsubscribe = None if bus is None else bus.subscribe(tell)
        try:
            yield
        finally:
            if unsubscribe is not None:
                unsubscribe()


def _icons_json(low: Any) -> bytes | None:
    icons = getattr(low, "icons", None)
    if not icons:
        return None
    return to_json([icon.model_dump(mode="json", by_alias=True, exclude_none=True) for icon in icons])


def _low_level_sdk(server: Any, kind: Kind, low: Any) -> Sdk:
    around: AbstractAsyncContextManager[Any] | None = None
    if kind is Kind.FASTMCP:
        around = server._lifespan_manager()
    if is_2(low):
        from mcpace.server.adopt.official_v2 import Sdk2

        return Sdk2(low, around)
    from mcpace.server.adopt.official_v1 import Sdk1

    session = None
    if kind is Kind.FASTMCP:
        session = (sys.modules["fastmcp.server.low_level"].MiddlewareServerSession, (server,))
    return Sdk1(low, around, session, is_resumable=getattr(server, "_event_store", None) is not None)


def _sdk_release(kind: Kind) -> str:
    from importlib.metadata import PackageNotFoundError, version

    package = "fastmcp" if kind is Kind.FASTMCP else "mcp"
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package
