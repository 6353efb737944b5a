"""Rust crates: a release build by the version's Cargo.lock. Of what cargo leaves, only the binary is kept.

Until then it lies where the next attempt finds it: what takes minutes isn't begun anew after a Ctrl-C.
"""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.installers.locked import copy_sources, digest
from mcpace.lab.installers.steps import BUILD_LIMIT_S, asked, needed, run_step
from mcpace.lab.installers.wanted import Wanted
from mcpace.lab.places import cache_folder
from mcpace.lab.releases import Progress

BINARY = "server"
REMEDY = "see rustup.rs, or apt-get install rustup && rustup default stable"


class Cargo:
    """Releases of crates, by committed locks."""

    cached = True

    def recipe(self, wanted: Wanted) -> list[object]:
        return [digest(wanted)]

    def build(self, wanted: Wanted, folder: Path, say: Progress) -> dict[str, str]:
        needed("cargo", wanted.label, REMEDY)
        say(f"building {wanted.label} (minutes, once)")
        copy_sources(wanted, folder)
        # The caller's lock is on the same recipe, so nobody else builds there.
        halfway = cache_folder() / "builds" / f"{wanted.adapter.name}-{wanted.version}-{digest(wanted)[:8]}"
        built = compile_release(wanted, folder / "Cargo.toml", halfway)
        program_of(folder).parent.mkdir(exist_ok=True)
        shutil.copy2(built, program_of(folder))
        shutil.rmtree(halfway, ignore_errors=True)
        return {**rust_version(), **locked_packages(folder / "Cargo.lock")}

    def places(self, folder: Path) -> dict[str, str]:
        return {"program": str(program_of(folder)), "built": str(folder)}

    def stands(self, folder: Path) -> bool:
        return program_of(folder).exists()

    def runs_on(self) -> dict[str, str]:
        return {}


def compile_release(wanted: Wanted, manifest: Path, target: Path) -> Path:
    """Builds the manifest's binary. Returns where it lies."""
    cargo = needed("cargo", wanted.label, REMEDY)
    options = ["--release", "--locked", "--quiet", "--bin", BINARY, "--manifest-path", str(manifest)]
    command = [cargo, "build", *options, "--target-dir", str(target)]
    # From the manifest's folder: a toolchain file above the user's own folder isn't meant.
    run_step(command, wanted.label, limit_s=BUILD_LIMIT_S, cwd=manifest.parent)
    built = target / "release" / BINARY
    if not built.is_file():
        raise EnvironmentProblem(f"{wanted.label} was built, but there is no {built}: unset CARGO_BUILD_TARGET")
    return built


def program_of(folder: Path) -> Path:
    return folder / "bin" / BINARY


def rust_version() -> dict[str, str]:
    return {"rustc": asked(["rustc", "--version"], r"rustc (\S+)")}


def locked_packages(lock: Path) -> dict[str, str]:
    """What a Cargo.lock names. A crate that is there twice counts in its newer version."""
    packages = tomllib.loads(lock.read_text(encoding="utf-8")).get("package", [])
    return {package["name"]: package["version"] for package in packages if "source" in package}
