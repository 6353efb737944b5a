"""Runs the Go and Rust unit tests of the parts of client programs that need no SDK, without a registry."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]
LIMIT_S = 240


def test_the_contract_in_go(tmp_path: Path) -> None:
    shutil.copy(ROOT / "adapters" / "shared" / "go" / "contract.go", tmp_path)
    shutil.copy(ROOT / "tests" / "fixtures" / "go" / "contract_test.go", tmp_path)
    (tmp_path / "main.go").write_text("package main\n\nfunc main() {}\n")
    (tmp_path / "go.mod").write_text("module contract\n\ngo 1.23\n")
    _passes(["go", "test", "."], tmp_path, GOFLAGS="-mod=mod", GOWORK="off", GOTOOLCHAIN="local")


def test_kinds_of_failures_in_rust(tmp_path: Path) -> None:
    source = ROOT / "adapters" / "rmcp" / "client" / "src" / "kind.rs"
    _passes(["rustc", "--edition", "2024", "--test", "-o", "tests", str(source)], tmp_path)
    _passes([str(tmp_path / "tests")], tmp_path)


def _passes(command: list[str], folder: Path, **environment: str) -> None:
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
