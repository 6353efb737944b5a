"""Builds the source distribution and Linux's wheels into dist/. Run it by `make dist`, in the environment of
requirements.txt beside this file.

The wheels are built from the unpacked source distribution, so that a file that it lacks is noticed. zig compiles the C
sources and links, against the oldest C library that Rust supports. auditwheel then checks each wheel.

Usage: build_wheels.py [TARGET...], by default all of TARGETS.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter
from pathlib import Path

from third_party_licences import LicenceError, write_licences

ROOT = Path(__file__).parents[2]
OUT = ROOT / "dist"
SOURCE = ROOT / "target" / "dist-source"
TARGETS = {
    "x86_64-unknown-linux-gnu": "manylinux_2_17",
    "aarch64-unknown-linux-gnu": "manylinux_2_17",
    "x86_64-unknown-linux-musl": "musllinux_1_2",
    "aarch64-unknown-linux-musl": "musllinux_1_2",
}
"""Tag of the wheel by Rust's name of the target."""
USAGE, UNREACHABLE = 2, 3


class BuildError(Exception):
    """A tool is missing, or a result is wrong. The text is for the user."""


def main(names: list[str]) -> int:
    """Returns the exit code: 2 for an unknown target, 3 for a failed build."""
    if unknown := sorted(set(names) - set(TARGETS)):
        print(f"dist: unknown target {', '.join(unknown)}; known are {', '.join(TARGETS)}", file=sys.stderr)
        return USAGE
    targets = names or list(TARGETS)
    try:
        install_targets(targets)
        write_licences(TARGETS)
        unpack(build_source_distribution())
        wheels = [build_wheel(target) for target in targets]
    except (BuildError, LicenceError) as error:
        print(f"dist: {error}", file=sys.stderr)
        return UNREACHABLE
    except subprocess.CalledProcessError as error:
        print(f"dist: this command failed with exit code {error.returncode}: {error.cmd}", file=sys.stderr)
        return UNREACHABLE
    for wheel in wheels:
        print("\n".join(describe(wheel)))
    return 0


def install_targets(targets: list[str]) -> None:
    """Installs Rust's standard library for the targets."""
    if shutil.which("rustup") is None:
        raise BuildError("rustup is missing, which installs Rust's standard library for other targets: see rustup.rs")
    subprocess.run(["rustup", "target", "add", *targets], check=True)


def build_source_distribution() -> Path:
    """Returns the path of the source distribution."""
    shutil.rmtree(OUT / "new", ignore_errors=True)
    maturin(ROOT, "sdist", {})
    return moved()


def build_wheel(target: str) -> Path:
    """Builds the wheel of a target, checks it, and returns its path."""
    cargo_home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    # Messages of panics name files of the sources: those names are the same whoever builds.
    flags = [f"--remap-path-prefix={folder}=" for folder in sorted((cargo_home / "registry" / "src").iterdir())]
    if target.endswith("-musl"):
        # A module of Python uses the C library of its process.
        flags.append("-Ctarget-feature=-crt-static")
    environment = {
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
        "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target")),
    }
    words = ("--profile", "dist", "--locked", "--zig", "--auditwheel", "check", "--target", target)
    maturin(SOURCE, "build", environment, *words, "--compatibility", TARGETS[target])
    return audited(moved(), TARGETS[target])


def maturin(folder: Path, command: str, environment: dict[str, str], *words: str) -> None:
    """Runs a command of maturin, whose result is left in ``dist/new``."""
    line = ["maturin", command, *words, "--out", str(OUT / "new")]
    subprocess.run(line, cwd=folder, env={**os.environ, **environment}, check=True)


def moved() -> Path:
    """Moves the one file of ``dist/new`` to ``dist`` and returns its path."""
    [new] = (OUT / "new").iterdir()
    place = new.replace(OUT / new.name)
    new.parent.rmdir()
    return place


def unpack(archive: Path) -> None:
    """Unpacks the source distribution to SOURCE."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    with tarfile.open(archive) as packed:
        packed.extractall(SOURCE.parent, filter=_as_changed)
    (SOURCE.parent / archive.name.removesuffix(".tar.gz")).replace(SOURCE)


def _as_changed(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
    """All files of the archive have one old time, by which cargo would use the crates of an earlier build."""
    return tarfile.data_filter(member, folder).replace(mtime=time.time(), deep=False)


def audited(wheel: Path, tag: str) -> Path:
    """Returns the wheel.

    :raises BuildError: auditwheel finds that the wheel needs other libraries or instructions than its tag says.
    """
    # The libraries of this machine are of another C library or architecture than the wheel.
    words = ["auditwheel", "show", "--json", "--ldpaths=", str(wheel)]
    report = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
    found = report["overall_tag"]
    # musl's loader takes `libc.so` for itself. auditwheel knows only Alpine's name of that file.
    if report["policy_upgrades"].get(report["sym_tag"]) == {"libs_to_eliminate": ["libc.so"]}:
        found = report["sym_tag"]
    if report["unsupported_isa"] or not found.startswith(tag):
        raise BuildError(f"auditwheel finds {found} for {wheel.name}, which must be {tag}")
    return wheel


def describe(wheel: Path) -> list[str]:
    """Returns the wheel's size and the size of each part, as lines."""
    parts: Counter[str] = Counter()
    with zipfile.ZipFile(wheel) as packed:
        for entry in packed.infolist():
            parts[part_of(entry.filename)] += entry.compress_size
    total = wheel.stat().st_size
    lines = [f"{wheel.name}: {total / 1e6:.2f} MB"]
    return lines + [f"  {size / 1e6:7.3f} MB  {part}" for part, size in parts.most_common()]


def part_of(name: str) -> str:
    """Returns the part of a wheel to which a file belongs."""
    if name.endswith(".so"):
        return "compiled part"
    if ".dist-info/sboms/" in name:
        return "bill of materials"
    if ".dist-info/" in name:
        return "licences and metadata"
    if name.startswith("mcpace/adapters/"):
        return "adapters"
    return "page of the report" if name.startswith("mcpace/report/assets/") else "Python"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
