"""A server of the official TypeScript SDK, whose tool works in a way that its first argument names."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcpace.lab.inside.node_runtime import install_packages
from mcpace.lab.inside.overlay import Overlay, ensure_overlay
from support.commands import run

HERE = Path(__file__).parent
PACKAGES = Overlay(
    "node-weather", "the libraries of the proofs", (HERE / "package.json", HERE / "package-lock.json"), install_packages
)
PROGRAMS = ("weather.mjs", "sdk.mjs")


@dataclass(frozen=True)
class NodeWeather:
    """The program in a folder of the test's, beside its packages, and what it asks."""

    folder: Path
    api: str
    postgresql: str = ""
    redis: str = ""
    sdk: int = 1

    @classmethod
    def in_folder(cls, folder: Path, **of: Any) -> NodeWeather:
        (folder / "node_modules").symlink_to(ensure_overlay(PACKAGES, print) / "node_modules")
        for program in PROGRAMS:
            shutil.copy(HERE / program, folder)
        (folder / "big").write_bytes(bytes(64 << 20))
        return cls(folder, **of)

    def with_sdk(self, sdk: int) -> NodeWeather:
        return replace(self, sdk=sdk)

    def command(self, way: str) -> list[str]:
        words = [way, self.api, self.postgresql, self.redis, str(self.folder / "big")]
        return ["env", f"SDK={self.sdk}", "node", str(self.folder / "weather.mjs"), *words]

    def measured(self, way: str) -> dict[str, Any]:
        """The case of the tool's calls."""
        target = f"stdio:{shlex.join(self.command(way))}"
        done = run("measure", target, "--tool", "forecast", "--inside", "--json", folder=self.folder)
        assert done.code == 0, done.stderr
        [case] = [case for case in json.loads(done.stdout)["cases"] if case["operation"] == "call"]
        assert case["inside"]["missing"] == [], case["inside"]
        return dict(case)
