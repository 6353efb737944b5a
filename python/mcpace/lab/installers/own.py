"""mcpace itself, under the same contract as anybody else: the Python face in the interpreter that runs, the Rust crate
from the checkout that this package was built from.

Nothing is cached: cargo knows what is fresh, and an old copy of ours would be measured as the new one.
"""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from mcpace import __version__
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.installers.cargo import BINARY, compile_release, rust_version
from mcpace.lab.installers.wanted import Wanted
from mcpace.lab.releases import Progress

CRATES = Path("crates/serve/Cargo.toml")
"""What tells a checkout from an installed package."""


class Own:
    """The one version that there is."""

    cached = False

    def recipe(self, wanted: Wanted) -> list[object]:
        return [str(wanted.adapter.folder)]

    def build(self, wanted: Wanted, folder: Path, say: Progress) -> dict[str, str]:
        manifest = wanted.adapter.install.manifest
        if manifest is None:
            return {"mcpace": __version__, "python": platform.python_version()}
        checkout = wanted.adapter.folder.parents[1]
        if not (checkout / CRATES).is_file():
            raise EnvironmentProblem(
                f"{wanted.label} is built from mcpace's sources, which aren't beside {wanted.adapter.folder.parent}: "
                "run mcpace from a checkout of its repository"
            )
        say(f"building {wanted.label} (minutes, the first time)")
        target = checkout / "target" / "adapters" / wanted.adapter.name
        built = compile_release(wanted, wanted.adapter.folder / manifest, target)
        link = folder / "bin" / BINARY
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(built)
        return {"mcpace": __version__, **rust_version()}

    def places(self, folder: Path) -> dict[str, str]:
        return {"python": sys.executable, "program": str(folder / "bin" / BINARY)}

    def stands(self, folder: Path) -> bool:
        return True

    def runs_on(self) -> dict[str, str]:
        return {}
