"""Recordings and exports contain requests and replies, so they are readable by their owner only."""

from __future__ import annotations

from pathlib import Path

from mcpace.cli.atomic_write import make_spare
from support.commands import run


def test_recordings_and_exports_are_their_owners_alone(tmp_path: Path) -> None:
    def modes() -> dict[str, int]:
        return {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}

    words = ("measure", "profile:simple", "--trials", 1, "--recordings", "kept", "--out", "run.json")
    assert run(*words, folder=tmp_path).code == 0
    (recorded,) = (tmp_path / "kept").iterdir()
    assert recorded.stat().st_mode & 0o777 == 0o600
    recorded.chmod(0o644)
    words = ("export", recorded, "--har", "of.har", "--trace", "of.trace", "--otlp", "of.otlp")
    assert run(*words, folder=tmp_path).code == 0
    for _ in range(3):
        assert run("record", "--upstream", "stdio:true", folder=tmp_path).code == 0
    assert run("record", "--upstream", "stdio:true", "--out", "named.jsonl.zst", folder=tmp_path).code == 0
    made = modes()
    assert {made.pop("kept"), made.pop("run.json")} == {0o755, 0o644}
    assert len(made) == 7 and set(made.values()) == {0o600}


def test_a_recording_without_a_name_follows_no_link(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("kept")
    link = tmp_path / "mcpace-1.jsonl.zst"
    link.symlink_to(other)
    assert make_spare(link) == tmp_path / "mcpace-1-2.jsonl.zst"
    link.unlink()
    link.symlink_to(tmp_path / "absent")
    assert make_spare(link) == tmp_path / "mcpace-1-3.jsonl.zst"
    assert other.read_text() == "kept" and not (tmp_path / "absent").exists()
