"""Servers of several SDKs for measuring layers, each with the interpreter that has its SDK."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support import adoption

SOURCES = adoption.ROOT / "tests" / "layers"
SERVERS = SOURCES / "servers"
DJANGO: Mapping[str, str] = {"DJANGO_SETTINGS_MODULE": "drf_settings", "PYTHONPATH": str(SERVERS)}


@dataclass(frozen=True)
class Served:
    """One server and its interpreter."""

    name: str
    sdk: str
    place: str
    lock: Path | None = None
    """``None``: in the environment that the tests run in."""
    environment: Mapping[str, str] = field(default_factory=dict)

    def interpreter(self) -> Path:
        """Returns the interpreter, and installs its environment the first time."""
        return Path(sys.executable) if self.lock is None else adoption.installed(self.name, self.lock)


def _of(name: str, sdk: str, file: str) -> Served:
    return Served(name, sdk, f"{SERVERS / file}.py:mcp", adoption.SOURCES / "environments" / f"{name}.txt")


def _drf(version: str, environment: str = "") -> Served:
    name = f"drf-mcp-{version}{environment}"
    return Served(name, "djangorestframework-mcp-server", "on_drf_mcp:server", SOURCES / f"{name}.txt", DJANGO)


MCPACE = Served("mcpace", "mcpace", f"{SERVERS / 'on_mcpace.py'}:mcp")
MCP_1 = _of("mcp-1", "python", "on_mcp_1")
MCP_2 = _of("mcp-2", "python", "on_mcp_2")
FASTMCP = _of("fastmcp-4", "fastmcp", "on_fastmcp")
MCPACE_GUARDED = Served("mcpace-guarded", "mcpace", f"{SERVERS / 'on_mcpace_guarded.py'}:mcp")
MCPACE_TRACED = Served("mcpace-traced", "mcpace", f"{SERVERS / 'on_mcpace_traced.py'}:mcp")
DRF, DRF_OLD = _drf("0.54.0"), _drf("0.4.0")
DRF_SERVED = _drf("0.54.0", "-served")
"""With gunicorn, and uvicorn with all that makes it quick."""
MCPACE_DJANGO = Served("mcpace.django", "mcpace-django", "on_mcpace_django:server", environment=DJANGO)
SERVED = (
    MCPACE,
    MCPACE_DJANGO,
    Served("mcpace.fastmcp", "mcpace", f"{SERVERS / 'on_mcpace_fastmcp.py'}:mcp"),
    MCP_1,
    MCP_2,
    _of("fastmcp-3", "fastmcp", "on_fastmcp"),
    FASTMCP,
    DRF,
    DRF_OLD,
)
