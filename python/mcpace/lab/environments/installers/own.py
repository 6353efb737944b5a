"""mcpace itself: the Python package in the running interpreter, the Rust crate from the package's checkout.

The environment is not cached: cargo detects changes, and a cached copy would be measured as the current version.
"""

from __future__ import annotations

import platform
import sys
from importlib.metadata import distributions
from pathlib import Path

from mcpace import __version__
from mcpace.lab.environments.installers.cargo import BINARY, compile_release, rust_version
from mcpace.lab.environments.installers.protocol import Installed, InstallRequest
from mcpace.lab.environments.installers.steps import run_step
from mcpace.lab.environments.releases import Say
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.paths import find_uv

CRATES = Path("crates/serve/Cargo.toml")
"""File that exists in a checkout, but not in an installed package."""
SITE = "site"
DONE = ".mcpace-complete"
"""Marker file, written last into the site folder."""


class Own:
    """The running version of mcpace."""

    cached = False

    def recipe(self, request: InstallRequest) -> list[object]:
        return [str(request.adapter.folder), request.extra_requirements, platform.python_version()]

    def build(self, request: InstallRequest, folder: Path, say: Say) -> Installed:
        manifest = request.adapter.install.manifest
        if manifest is None:
            others = install_beside(request, folder / SITE, say) if request.extra_requirements else {}
            return Installed({**others, "mcpace": __version__, "python": platform.python_version()})
        checkout = request.adapter.folder.parents[1]
        if not (checkout / CRATES).is_file():
            raise EnvironmentProblem(
                f"{request.release_label} is built from mcpace's sources, "
                f"which aren't beside {request.adapter.folder.parent}: "
                "run mcpace from a checkout of its repository, or compare mcpace-python, which every installation has"
            )
        say(f"building {request.release_label} (minutes, the first time)")
        target = checkout / "target" / "adapters" / request.adapter.name
        built = compile_release(request, request.adapter.folder / manifest, target)
        link = folder / "bin" / BINARY
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(built)
        return Installed({"mcpace": __version__, **rust_version()})

    def command_values(self, folder: Path) -> dict[str, str]:
        return {"python": sys.executable, "site": str(folder / SITE), "program": str(folder / "bin" / BINARY)}

    def is_usable(self, folder: Path) -> bool:
        return True

    def runtime_versions(self) -> dict[str, str]:
        return {}


def install_beside(request: InstallRequest, site: Path, say: Say) -> dict[str, str]:
    """Installs the program's additional requirements into a separate folder, so mcpace's installation is unchanged."""
    done = site / DONE
    if not done.exists():
        say(f"installing {', '.join(request.extra_requirements)} for {request.release_label}")
        command = [str(find_uv()), "pip", "install", "--quiet", "--compile-bytecode", "--python", sys.executable]
        run_step([*command, "--target", str(site), *request.extra_requirements], request.release_label)
        done.touch()
    found = distributions(path=[str(site)])
    return {distribution.name: distribution.version for distribution in found}
