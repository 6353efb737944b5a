"""mcpace itself, under the same contract as anybody else: the Python face in the interpreter that runs, the Rust crate
from the checkout that this package was built from.

Nothing is cached: cargo knows what is fresh, and an old copy of ours would be measured as the new one.
"""

from __future__ import annotations

import platform
import sys
from importlib.metadata import distributions
from pathlib import Path

from mcpace import __version__
from mcpace.lab.environments.installers.cargo import BINARY, compile_release, rust_version
from mcpace.lab.environments.installers.steps import run_step
from mcpace.lab.environments.installers.wanted import Installed, Wanted
from mcpace.lab.environments.releases import Say
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.paths import find_uv

CRATES = Path("crates/serve/Cargo.toml")
"""What tells a checkout from an installed package."""
SITE = "site"
DONE = ".mcpace-complete"
"""Written last into it."""


class Own:
    """The one version that there is."""

    cached = False

    def recipe(self, wanted: Wanted) -> list[object]:
        return [str(wanted.adapter.folder), wanted.also, platform.python_version()]

    def build(self, wanted: Wanted, folder: Path, say: Say) -> Installed:
        manifest = wanted.adapter.install.manifest
        if manifest is None:
            others = install_beside(wanted, folder / SITE, say) if wanted.also else {}
            return Installed({**others, "mcpace": __version__, "python": platform.python_version()})
        checkout = wanted.adapter.folder.parents[1]
        if not (checkout / CRATES).is_file():
            raise EnvironmentProblem(
                f"{wanted.label} is built from mcpace's sources, which aren't beside {wanted.adapter.folder.parent}: "
                "run mcpace from a checkout of its repository, or compare mcpace-python, which every installation has"
            )
        say(f"building {wanted.label} (minutes, the first time)")
        target = checkout / "target" / "adapters" / wanted.adapter.name
        built = compile_release(wanted, wanted.adapter.folder / manifest, target)
        link = folder / "bin" / BINARY
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(built)
        return Installed({"mcpace": __version__, **rust_version()})

    def places(self, folder: Path) -> dict[str, str]:
        return {"python": sys.executable, "site": str(folder / SITE), "program": str(folder / "bin" / BINARY)}

    def stands(self, folder: Path) -> bool:
        return True

    def runs_on(self) -> dict[str, str]:
        return {}


def install_beside(wanted: Wanted, site: Path, say: Say) -> dict[str, str]:
    """What the program needs and mcpace doesn't, in a folder of its own: nobody's installation of mcpace is changed."""
    done = site / DONE
    if not done.exists():
        say(f"installing {', '.join(wanted.also)} for {wanted.label}")
        command = [str(find_uv()), "pip", "install", "--quiet", "--compile-bytecode", "--python", sys.executable]
        run_step([*command, "--target", str(site), *wanted.also], wanted.label)
        done.touch()
    found = distributions(path=[str(site)])
    return {distribution.name: distribution.version for distribution in found}
