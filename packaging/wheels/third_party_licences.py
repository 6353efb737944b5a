"""Writes the licences of everything that is compiled into the wheels: Rust crates, the C sources inside them, and
Rust's standard library.

A crate without a text of its licence gets the text of the Apache License, if it permits that licence. Any other crate
without a text is an error. The page of the report has no dependencies at run time (web/package.json).
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = "mcpace-py"
FILE_NAME = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)(?![a-z])(?!.*\.(rs|py|js)$)", re.I)
STANDARD_LIBRARY = "share/doc/rust/COPYRIGHT-library.html"
"""In the toolchain's folder: licences of the standard library and of its own dependencies."""
HEAD = """The compiled part of mcpace's wheels contains the software below. Each text is followed by
the packages to which it applies. Where a package has several licences, "OR" gives the choice.
"""


class LicenceError(Exception):
    """The text of a licence is missing."""


def write_licences(targets: Iterable[str], folder: Path = ROOT) -> list[Path]:
    """Writes ``THIRD-PARTY-LICENSES.txt`` and ``THIRD-PARTY-LICENSES-RUST.html`` to the folder.

    :param targets: Rust's names of the wheels' targets; the files name the crates of all of them.
    :raises LicenceError: a crate or the toolchain has no licence text.
    """
    crates = {crate["id"]: crate for target in targets for crate in linked_crates(metadata(target))}
    text, page = folder / "THIRD-PARTY-LICENSES.txt", folder / "THIRD-PARTY-LICENSES-RUST.html"
    text.write_text(licence_text(crates.values()), encoding="utf-8")
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True, timeout=60)
    source = Path(sysroot.stdout.strip(), STANDARD_LIBRARY)
    if not source.is_file():
        raise LicenceError(f"the Rust toolchain has no {source}: install a toolchain of Rust 1.84 or newer with rustup")
    page.write_bytes(source.read_bytes())
    return [text, page]


def metadata(target: str) -> dict[str, Any]:
    """Returns what ``cargo metadata`` prints for the target."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, timeout=600)
    return json.loads(done.stdout)


def linked_crates(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the packages of other authors that ``cargo metadata`` lists below PACKAGE, without those of builds and
    tests only.
    """
    packages = {package["id"]: package for package in tree["packages"]}
    nodes = {node["id"]: node for node in tree["resolve"]["nodes"]}
    found: set[str] = set()
    waiting = [identity for identity, package in packages.items() if package["name"] == PACKAGE]
    while waiting:
        if (identity := waiting.pop()) not in found:
            found.add(identity)
            needed = nodes[identity]["deps"]
            waiting += [one["pkg"] for one in needed if any(kind["kind"] is None for kind in one["dep_kinds"])]
    return [packages[identity] for identity in sorted(found) if packages[identity]["source"] is not None]


def licence_text(crates: Iterable[dict[str, Any]]) -> str:
    """Returns each different text once, with the packages to which it applies."""
    users: dict[str, set[str]] = defaultdict(set)
    for crate in crates:
        for path, text in texts_of(crate):
            where = f", {path}" if "/" in path else ""
            users[text].add(f"{crate['name']} {crate['version']} ({crate['license']}{where})")
    line = "=" * 80
    parts = []
    for text, names in users.items():
        parts.append("\n".join((line, text, "", "Applies to:", *(f"  {name}" for name in sorted(names)), "")))
    return "\n".join((HEAD, *sorted(parts)))


def texts_of(crate: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields path in the crate and text of each licence file.

    :raises LicenceError: there is none, and the crate does not permit the Apache License.
    """
    folder = Path(crate["manifest_path"]).parent
    paths = sorted(path for path in folder.rglob("*") if FILE_NAME.match(path.name) and path.is_file())
    if not paths:
        if "Apache-2.0" not in re.split(r"[ /()]+", crate["license"] or "") or " AND " in crate["license"]:
            raise LicenceError(f"{crate['name']} {crate['version']} has no text of its licence ({crate['license']})")
        paths, folder = [ROOT / "LICENSE-APACHE"], ROOT
    for path in paths:
        text = "\n".join(line.rstrip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
        yield path.relative_to(folder).as_posix(), text.strip("\n")
