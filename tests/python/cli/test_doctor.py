"""``mcpace doctor``, with a machine on which pieces are missing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mcpace.lab import requirements
from support.commands import run

ENOUGH = 10
"""Pieces that every machine is asked for."""


def test_every_piece_says_what_it_adds_and_what_installs_it(tmp_path: Path) -> None:
    ended = run("doctor", "--json", folder=tmp_path)
    assert (ended.code, ended.stderr) == (0, "")
    pieces = json.loads(ended.stdout)["pieces"]
    assert len({piece["name"] for piece in pieces}) == len(pieces) >= ENOUGH
    for piece in pieces:
        assert piece["adds"]
        assert piece["install"] or piece["present"]
        assert piece["found"] or not piece["present"] or piece["name"].startswith("mcpace[")


def test_a_program_that_is_missing_is_listed_with_its_command(tmp_path: Path) -> None:
    ended = run("doctor", folder=tmp_path, environment={"PATH": str(tmp_path)})
    assert ended.code == 0
    missing = ended.stdout.partition("\nMissing:")[2]
    assert "Go\n" in missing
    assert "install: apt-get install golang-go" in missing


def test_a_program_shows_the_version_that_it_prints(tmp_path: Path) -> None:
    program = tmp_path / "wrk"
    # wrk prints its version on its way to an error.
    program.write_text("#!/bin/sh\necho 'wrk 9.8.7-test' >&2; pwd >&2; exit 1\n")
    program.chmod(0o755)
    pieces = json.loads(run("doctor", "--json", folder=tmp_path, environment={"PATH": str(tmp_path)}).stdout)["pieces"]
    found = next(piece["found"] for piece in pieces if piece["name"] == "wrk")
    assert found == f"9.8.7 at {program}"


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "go"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setattr(requirements, "VERSION_LIMIT_S", 0.5)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    piece = next(piece for piece in requirements.find_pieces() if piece.name == "Go")
    assert piece.found.startswith("an unknown version")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_the_cache_shows_its_size(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (cache / "a").mkdir(parents=True)
    (cache / "a" / "file").write_bytes(bytes(3_000_000))
    (cache / "link").symlink_to("/")
    pieces = json.loads(run("doctor", "--json", folder=tmp_path, environment={"MCPACE_CACHE": str(cache)}).stdout)[
        "pieces"
    ]
    assert next(piece["found"] for piece in pieces if piece["name"] == "cache") == f"{cache}, 3 MB"


@pytest.mark.parametrize("scope", ["0", "1", "2", "3"])
@pytest.mark.parametrize("capable", [True, False])
def test_reading_other_processes_follows_the_kernels_rule(
    scope: str, capable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scope").write_text(f"{scope}\n")
    (tmp_path / "status").write_text(f"Name:\tx\nCapEff:\t{1 << 19 if capable else 0:016x}\n")
    monkeypatch.setattr(requirements, "SCOPE", tmp_path / "scope")
    monkeypatch.setattr(requirements, "STATUS", tmp_path / "status")
    assert requirements._may_trace() == (scope == "0" or (capable and scope != "3"))


def test_kernel_questions_are_answered_by_the_kernel() -> None:
    assert requirements._has_tcp_info() is True
    assert requirements._has_socket_diagnostics() is True


def test_a_query_that_the_kernel_refuses_is_no_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements.socket, "AF_NETLINK", 255)
    assert requirements._has_socket_diagnostics() is False


def test_a_python_without_the_name_of_netlink_finds_the_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(requirements.socket, "AF_NETLINK")
    assert requirements._has_socket_diagnostics() is True
