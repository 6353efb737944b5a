"""Rust crates: a release build, servers by the version's Cargo.lock, clients by the one that the crate itself was
published with. Of what cargo leaves, only the binary is kept.

Until then it lies where the next attempt finds it: what takes minutes isn't begun anew after a Ctrl-C.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

from mcpace.lab.adapters.adapter import Role
from mcpace.lab.environments.installers.built import client_releases, copy_sources, digest
from mcpace.lab.environments.installers.steps import (
    BUILD_LIMIT_S,
    INSTALL_LIMIT_S,
    asked,
    in_one_line,
    needed,
    run_step,
)
from mcpace.lab.environments.installers.wanted import Installed, Wanted
from mcpace.lab.environments.releases import Say
from mcpace.lab.environments.toolchains import REMEDIES
from mcpace.lab.errors import EnvironmentProblem
from mcpace.lab.paths import cache_folder
from mcpace.lab.processes.child_processes import run_child

BINARY = "server"
CLIENT_BINARY = "client"
REMEDY = REMEDIES["cargo"]


class Cargo:
    """Releases of crates."""

    cached = True

    def recipe(self, wanted: Wanted) -> list[object]:
        return [digest(wanted)]

    def build(self, wanted: Wanted, folder: Path, say: Say) -> Installed:
        needed("cargo", wanted.label, REMEDY)
        say(f"building {wanted.label} (minutes, once)")
        copy_sources(wanted, folder)
        # The caller's lock is on the same recipe, so nobody else builds there.
        halfway = cache_folder() / "builds" / f"{wanted.adapter.name}-{wanted.version}-{digest(wanted)[:8]}"
        if wanted.role is Role.CLIENT:
            go_back(wanted, folder)
        built = compile_release(wanted, folder / "Cargo.toml", halfway)
        program_of(folder).parent.mkdir(exist_ok=True)
        shutil.copy2(built, program_of(folder))
        shutil.rmtree(halfway, ignore_errors=True)
        return Installed({**rust_version(), **locked_packages(folder / "Cargo.lock")})

    def places(self, folder: Path) -> dict[str, str]:
        return {"program": str(program_of(folder)), "built": str(folder)}

    def stands(self, folder: Path) -> bool:
        return program_of(folder).exists()

    def runs_on(self) -> dict[str, str]:
        return {}


def compile_release(wanted: Wanted, manifest: Path, target: Path) -> Path:
    """Builds the manifest's binary. Returns where it lies."""
    cargo = needed("cargo", wanted.label, REMEDY)
    binary, locked = (CLIENT_BINARY, []) if wanted.role is Role.CLIENT else (BINARY, ["--locked"])
    options = ["--release", *locked, "--quiet", "--bin", binary, "--manifest-path", str(manifest)]
    command = [cargo, "build", *options, "--target-dir", str(target)]
    # From the manifest's folder: a toolchain file above the user's own folder isn't meant.
    run_step(command, wanted.label, limit_s=BUILD_LIMIT_S, cwd=manifest.parent)
    built = target / "release" / binary
    if not built.is_file():
        raise EnvironmentProblem(f"{wanted.label} was built, but there is no {built}: unset CARGO_BUILD_TARGET")
    return built


def go_back(wanted: Wanted, folder: Path) -> None:
    """Puts the lock that the crate was published with beside the client's manifest: cargo keeps to its versions, and
    adds what the program alone needs. A crate without one gets today's dependencies.
    """
    package = client_releases(wanted).package
    probe = folder / "probe"
    (probe / "src").mkdir(parents=True)
    (probe / "src" / "lib.rs").touch()
    requirement = f'{package} = {{ version = "={wanted.version}", default-features = false }}'
    head = '[workspace]\n\n[package]\nname = "probe"\nversion = "0.0.0"\nedition = "2021"\n'
    (probe / "Cargo.toml").write_text(f"{head}\n[dependencies]\n{requirement}\n", encoding="utf-8")
    command = ["cargo", "metadata", "--format-version", "1", "--quiet", "--manifest-path", str(probe / "Cargo.toml")]
    done = run_child(command, INSTALL_LIMIT_S, cwd=probe)
    shutil.rmtree(probe)
    if done.timed_out or done.code != 0:
        why = f"cargo took longer than {INSTALL_LIMIT_S:g} s" if done.timed_out else in_one_line(done.stderr)
        raise EnvironmentProblem(f"{wanted.label} can't be installed: {why}")
    for entry in json.loads(done.stdout)["packages"]:
        lock = Path(entry["manifest_path"]).with_name("Cargo.lock")
        if entry["name"] == package and lock.is_file():
            shutil.copyfile(lock, folder / "Cargo.lock")


def program_of(folder: Path) -> Path:
    return folder / "bin" / BINARY


def rust_version() -> dict[str, str]:
    return {"rustc": asked(["rustc", "--version"], r"rustc (\S+)")}


def locked_packages(lock: Path) -> dict[str, str]:
    """What a Cargo.lock names. A crate that is there twice counts in its newer version."""
    packages = tomllib.loads(lock.read_text(encoding="utf-8")).get("package", [])
    return {package["name"]: package["version"] for package in packages if "source" in package}
