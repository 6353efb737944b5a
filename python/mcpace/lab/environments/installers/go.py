"""Go modules. Servers use the go.mod and go.sum of their version, which the build may not change.

Clients name only their SDK: Go selects the minimal versions that the SDK requires, which are those of its time.
"""

from __future__ import annotations

import re
from pathlib import Path

from mcpace.lab.adapters.adapter import Role
from mcpace.lab.environments.installers.built import copy_sources, sources_digest
from mcpace.lab.environments.installers.protocol import Installed, InstallRequest
from mcpace.lab.environments.installers.steps import BUILD_LIMIT_S, read_version, require_tool, run_step
from mcpace.lab.environments.releases import Say
from mcpace.lab.environments.toolchains import REMEDIES

REMEDY = REMEDIES["go"]
REQUIREMENT = re.compile(r"^\s*(?:require\s+)?(\S+\.\S+/\S+)\s+v(\S+)", re.MULTILINE)


class Go:
    """Releases of modules."""

    cached = True

    def recipe(self, request: InstallRequest) -> list[object]:
        return [sources_digest(request)]

    def build(self, request: InstallRequest, folder: Path, say: Say) -> Installed:
        go = require_tool("go", request.release_label, REMEDY)
        say(f"building {request.release_label}")
        copy_sources(request, folder)
        may_complete = "mod" if request.role is Role.CLIENT else "readonly"
        command = [go, "build", f"-mod={may_complete}", "-trimpath", "-o", str(program_of(folder)), "."]
        # GOWORK=off ignores a workspace in a folder above the cache.
        run_step(command, request.release_label, limit_s=BUILD_LIMIT_S, cwd=folder, env={"GOWORK": "off"})
        required = dict(REQUIREMENT.findall((folder / "go.mod").read_text(encoding="utf-8")))
        return Installed({"go": read_version([go, "version", str(program_of(folder))], r"go(\d\S*)"), **required})

    def command_values(self, folder: Path) -> dict[str, str]:
        return {"program": str(program_of(folder)), "built": str(folder)}

    def is_usable(self, folder: Path) -> bool:
        return program_of(folder).exists()

    def runtime_versions(self) -> dict[str, str]:
        return {}


def program_of(folder: Path) -> Path:
    return folder / "bin" / "server"
