"""The stages of a package runner: resolution of the package, download, installation.

Design constraint: npm and uv say on stderr what they do, if an environment variable asks them to. A stage ends with the
line that says so. Both unpack packages while they download others, so download and unpacking are one stage.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mcpace.lab.check.stamped_output import Line
from mcpace.report.model.start import PartCode

NANOS = 1e9
REPORTING = {"npm_config_timing": "true", "npm_config_loglevel": "http", "RUST_LOG": "uv=debug"}
"""Environment in which npm and uv report their stages."""
SCRIPTS_REPORTING = {"npm_config_foreground_scripts": "true"}
"""Environment in which npm shows the output of a package's scripts, which it hides even where one fails."""
CACHES = {
    "npx": ("npm_config_cache",),
    "npm": ("npm_config_cache",),
    "uvx": ("UV_CACHE_DIR", "UV_TOOL_DIR"),
    "uv": ("UV_CACHE_DIR", "UV_TOOL_DIR"),
}
"""For each package runner that is started with an empty cache: the environment variables that name its folders."""
INSTALLED = re.compile(rb"Installed \d+ packages? in ([\d.]+)(ms|s|m)")
SECONDS = {b"ms": 1e-3, b"s": 1.0, b"m": 60.0}


@dataclass(frozen=True)
class _Marks:
    """Patterns of the lines that begin or end a stage."""

    begin: re.Pattern[bytes]
    resolved: re.Pattern[bytes]
    """The last such line ends the resolution."""
    fetched: re.Pattern[bytes] | None
    installed: re.Pattern[bytes]


NPM = _Marks(
    re.compile(rb"npm timing npm:load Completed"),
    re.compile(rb"npm (http fetch GET \d+ \S+(?<!\.tgz) |timing idealTree Completed)"),
    re.compile(rb"npm timing reify:unpack Completed"),
    re.compile(rb"npm timing reify Completed"),
)
UV = _Marks(
    re.compile(rb"DEBUG Solving with "),
    re.compile(rb"DEBUG Tried \d+ versions"),
    None,
    INSTALLED,
)

Stages = dict[PartCode, float]
"""Seconds of each stage."""


def parse_stages(lines: Sequence[Line]) -> Stages:
    """The stages of the first package runner that reported any; empty where none did."""
    for marks in (NPM, UV):
        if found := _stages(marks, lines):
            return found
    return {}


def _stages(marks: _Marks, lines: Sequence[Line]) -> Stages:
    begin_ns = next((at for at, line in lines if marks.begin.match(line)), None)
    if begin_ns is None:
        return {}
    resolved_ns = max((at for at, line in lines if marks.resolved.match(line)), default=begin_ns)
    stages: Stages = {"resolve": (resolved_ns - begin_ns) / NANOS}
    last = next(((at, found) for at, line in lines if (found := marks.installed.match(line))), None)
    if last is None:
        return stages
    installed_ns, found = last
    if marks.fetched is not None:
        fetched_ns = next((at for at, line in lines if marks.fetched.match(line)), installed_ns)
    else:
        fetched_ns = installed_ns - int(float(found[1]) * SECONDS[found[2]] * NANOS)
    stages["fetch"] = max(fetched_ns - resolved_ns, 0) / NANOS
    stages["install"] = max(installed_ns - max(fetched_ns, resolved_ns), 0) / NANOS
    return stages
