"""Go modules: servers by the version's go.mod and go.sum, neither of which the build may change.

Clients name their SDK alone: Go takes the least versions that it asks for, which are those of its own time.
"""

from __future__ import annotations

import re
from pathlib import Path

from mcpace.lab.adapters.adapter import Role
from mcpace.lab.environments.installers.built import copy_sources, digest
from mcpace.lab.environments.installers.steps import BUILD_LIMIT_S, asked, needed, run_step
from mcpace.lab.environments.installers.wanted import Installed, Wanted
from mcpace.lab.environments.releases import Say
from mcpace.lab.environments.toolchains import REMEDIES

REMEDY = REMEDIES["go"]
REQUIREMENT = re.compile(r"^\s*(?:require\s+)?(\S+\.\S+/\S+)\s+v(\S+)", re.MULTILINE)


class Go:
    """Releases of modules."""

    cached = True

    def recipe(self, wanted: Wanted) -> list[object]:
        return [digest(wanted)]

    def build(self, wanted: Wanted, folder: Path, say: Say) -> Installed:
        go = needed("go", wanted.label, REMEDY)
        say(f"building {wanted.label}")
        copy_sources(wanted, folder)
        may_complete = "mod" if wanted.role is Role.CLIENT else "readonly"
        command = [go, "build", f"-mod={may_complete}", "-trimpath", "-o", str(program_of(folder)), "."]
        # A workspace above the cache isn't meant.
        run_step(command, wanted.label, limit_s=BUILD_LIMIT_S, cwd=folder, env={"GOWORK": "off"})
        required = dict(REQUIREMENT.findall((folder / "go.mod").read_text(encoding="utf-8")))
        return Installed({"go": asked([go, "version", str(program_of(folder))], r"go(\d\S*)"), **required})

    def places(self, folder: Path) -> dict[str, str]:
        return {"program": str(program_of(folder)), "built": str(folder)}

    def stands(self, folder: Path) -> bool:
        return program_of(folder).exists()

    def runs_on(self) -> dict[str, str]:
        return {}


def program_of(folder: Path) -> Path:
    return folder / "bin" / "server"
