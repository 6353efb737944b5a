"""Rust crates, compiled in release mode.

Servers use the Cargo.lock of their version; clients use the one that the crate was published with. Only the binary is
kept. The target folder lies in the cache until the build is complete, so that a build continues after Ctrl-C.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

from mcpace.lab.adapters.adapter import Role
from mcpace.lab.environments.installers.built import client_releases, copy_sources, sources_digest
from mcpace.lab.environments.installers.protocol import Installed, InstallRequest
from mcpace.lab.environments.installers.steps import (
    BUILD_LIMIT_S,
    INSTALL_LIMIT_S,
    in_one_line,
    read_version,
    require_tool,
    run_step,
)
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

    def recipe(self, request: InstallRequest) -> list[object]:
        return [sources_digest(request)]

    def build(self, request: InstallRequest, folder: Path, say: Say) -> Installed:
        require_tool("cargo", request.release_label, REMEDY)
        say(f"building {request.release_label} (minutes, once)")
        copy_sources(request, folder)
        # The caller holds the lock of this recipe, so no other process builds in this folder.
        halfway = cache_folder() / "builds" / f"{request.adapter.name}-{request.version}-{sources_digest(request)[:8]}"
        if request.role is Role.CLIENT:
            copy_published_lock(request, folder)
        built = compile_release(request, folder / "Cargo.toml", halfway)
        program_of(folder).parent.mkdir(exist_ok=True)
        shutil.copy2(built, program_of(folder))
        shutil.rmtree(halfway, ignore_errors=True)
        return Installed({**rust_version(), **locked_packages(folder / "Cargo.lock")})

    def command_values(self, folder: Path) -> dict[str, str]:
        return {"program": str(program_of(folder)), "built": str(folder)}

    def is_usable(self, folder: Path) -> bool:
        return program_of(folder).exists()

    def runtime_versions(self) -> dict[str, str]:
        return {}


def compile_release(request: InstallRequest, manifest: Path, target: Path) -> Path:
    """Builds the manifest's binary and returns its path."""
    cargo = require_tool("cargo", request.release_label, REMEDY)
    binary, locked = (CLIENT_BINARY, []) if request.role is Role.CLIENT else (BINARY, ["--locked"])
    options = ["--release", *locked, "--quiet", "--bin", binary, "--manifest-path", str(manifest)]
    command = [cargo, "build", *options, "--target-dir", str(target)]
    # Cargo runs in the manifest's folder, so that toolchain files above the user's folder have no effect.
    run_step(command, request.release_label, limit_s=BUILD_LIMIT_S, cwd=manifest.parent)
    built = target / "release" / binary
    if not built.is_file():
        raise EnvironmentProblem(
            f"{request.release_label} was built, but there is no {built}: unset CARGO_BUILD_TARGET"
        )
    return built


def copy_published_lock(request: InstallRequest, folder: Path) -> None:
    """Copies the lock file that the crate was published with beside the client's manifest.

    Cargo keeps the locked versions and adds the other requirements of the program. A crate without a lock file gets
    today's dependencies.
    """
    package = client_releases(request).package
    probe = folder / "probe"
    (probe / "src").mkdir(parents=True)
    (probe / "src" / "lib.rs").touch()
    requirement = f'{package} = {{ version = "={request.version}", default-features = false }}'
    head = '[workspace]\n\n[package]\nname = "probe"\nversion = "0.0.0"\nedition = "2021"\n'
    (probe / "Cargo.toml").write_text(f"{head}\n[dependencies]\n{requirement}\n", encoding="utf-8")
    command = ["cargo", "metadata", "--format-version", "1", "--quiet", "--manifest-path", str(probe / "Cargo.toml")]
    done = run_child(command, INSTALL_LIMIT_S, cwd=probe)
    shutil.rmtree(probe)
    if done.timed_out or done.code != 0:
        why = f"cargo took longer than {INSTALL_LIMIT_S:g} s" if done.timed_out else in_one_line(done.stderr)
        raise EnvironmentProblem(f"{request.release_label} can't be installed: {why}")
    for entry in json.loads(done.stdout)["packages"]:
        lock = Path(entry["manifest_path"]).with_name("Cargo.lock")
        if entry["name"] == package and lock.is_file():
            shutil.copyfile(lock, folder / "Cargo.lock")


def program_of(folder: Path) -> Path:
    return folder / "bin" / BINARY


def rust_version() -> dict[str, str]:
    return {"rustc": read_version(["rustc", "--version"], r"rustc (\S+)")}


def locked_packages(lock: Path) -> dict[str, str]:
    """Versions in a Cargo.lock, by package. A package with two versions is listed with the newer one."""
    packages = tomllib.loads(lock.read_text(encoding="utf-8")).get("package", [])
    return {package["name"]: package["version"] for package in packages if "source" in package}
