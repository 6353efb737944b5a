"""The programs that build and try the wheels. `make test-dist` tries the wheels themselves."""

from __future__ import annotations

import json
import os
import py_compile
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "packaging" / "wheels"
sys.path.insert(0, str(PROGRAMS))

import build_wheels  # noqa: E402
import third_party_licences  # noqa: E402

TARGET = "x86_64-unknown-linux-gnu"
WITHOUT_TEXT = {"name": "lone", "version": "1.0.0"}


def test_the_licences_name_every_crate_that_cargo_links(tmp_path: Path) -> None:
    third_party_licences.write_licences([TARGET], tmp_path)
    text = (tmp_path / "THIRD-PARTY-LICENSES.txt").read_text()
    words = ("tree", "--package", "mcpace-py", "--edges", "normal,no-proc-macro", "--prefix", "none", "--locked")
    command = ["cargo", *words, "--target", TARGET, "--offline"]
    tree = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout
    crates = {tuple(line.split()[:2]) for line in tree.splitlines() if not line.startswith("mcpace-")}
    assert len(crates) > 100
    assert [name for name, version in crates if f"\n  {name} {version.removeprefix('v')} (" not in text] == []
    # The sources in C have licences of their own.
    assert "mimalloc/v3/LICENSE)" in text and "zstd/COPYING)" in text
    assert "<html" in (tmp_path / "THIRD-PARTY-LICENSES-RUST.html").read_text()


@pytest.mark.parametrize("licence", ["MIT", "Apache-2.0 AND ISC", None])
def test_a_crate_without_the_text_of_its_licence_is_refused(licence: str | None, tmp_path: Path) -> None:
    crate = {**WITHOUT_TEXT, "license": licence, "manifest_path": str(tmp_path / "Cargo.toml")}
    with pytest.raises(third_party_licences.LicenceError, match=r"lone 1\.0\.0 has no text of its licence"):
        third_party_licences.licence_text([crate])


def test_a_crate_without_a_text_has_the_apache_license_where_it_permits_that(tmp_path: Path) -> None:
    crate = {**WITHOUT_TEXT, "license": "MIT/Apache-2.0", "manifest_path": str(tmp_path / "Cargo.toml")}
    text = third_party_licences.licence_text([crate])
    assert "Apache License" in text and "  lone 1.0.0 (MIT/Apache-2.0)" in text


def test_sources_are_newer_than_what_an_earlier_build_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_wheels, "SOURCE", tmp_path / "dist-source")
    before = time.time()
    (tmp_path / "lib.rs").write_text("")
    with tarfile.open(tmp_path / "mcpace-1.tar.gz", "w:gz") as archive:
        member = archive.gettarinfo(tmp_path / "lib.rs", "mcpace-1/lib.rs")
        member.mtime = 1_153_704_088  # maturin's time for all files
        archive.addfile(member)
    build_wheels.unpack(tmp_path / "mcpace-1.tar.gz")
    assert (tmp_path / "dist-source" / "lib.rs").stat().st_mtime >= before - 1


def test_the_source_distribution_has_the_adapters_without_the_bytecode_of_the_checkout(tmp_path: Path) -> None:
    compiled = py_compile.compile(str(min((ROOT / "adapters" / "shared").glob("*.py"))))
    assert compiled is not None and "__pycache__" in compiled
    maturin = Path(sys.executable).with_name("maturin")
    subprocess.run([maturin, "sdist", "--out", tmp_path], cwd=ROOT, capture_output=True, check=True, timeout=120)
    [archive] = tmp_path.iterdir()
    with tarfile.open(archive) as packed:
        names = packed.getnames()
    assert any("/python/mcpace/adapters/shared/" in name for name in names)
    assert not [name for name in names if "__pycache__" in name]


def audited(tag: str, changes: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The wheel of a tag, checked with an auditwheel that finds a musl wheel with ``changes``."""
    report = {
        "overall_tag": "linux_x86_64",
        "sym_tag": "musllinux_1_2_x86_64",
        "unsupported_isa": False,
        "policy_upgrades": {"musllinux_1_2_x86_64": {"libs_to_eliminate": ["libc.so"]}},
    }
    program = folder / "auditwheel"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps({**report, **changes})}\nEND\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return build_wheels.audited(folder / "one.whl", tag)


def test_a_wheel_that_needs_the_library_of_musl_alone_is_a_musl_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert audited("musllinux_1_2", {}, tmp_path, monkeypatch) == tmp_path / "one.whl"


@pytest.mark.parametrize(
    ("tag", "changes"),
    [
        ("musllinux_1_1", {}),
        ("manylinux_2_17", {}),
        ("musllinux_1_2", {"unsupported_isa": True}),
        ("musllinux_1_2", {"policy_upgrades": {"musllinux_1_2_x86_64": {"libs_to_eliminate": ["libc.so", "libx.so"]}}}),
    ],
)
def test_a_wheel_with_other_needs_than_its_tag_says_is_refused(
    tag: str, changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(build_wheels.BuildError, match=rf"for one\.whl, which must be {tag}$"):
        audited(tag, changes, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [("build_wheels.py", 2, "dist: unknown target sparc; "), ("try_in_roots.py", 3, "test-dist: unknown root sparc; ")],
)
def test_an_unknown_name_is_refused(program: str, code: int, said: str) -> None:
    command = [sys.executable, PROGRAMS / program, "sparc"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(said) and done.stderr.count("\n") == 1
