"""``mcpace export --parquet``: real recordings as tables, read by pyarrow."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from test_explain_recording import looping

from mcpace.lab.tables.schema import PARTITIONS, PARTS, TABLES, VERSION, document, part_column
from support.commands import run as mcpace

ROOT = Path(__file__).parents[3]
MILLISECOND = 1_000_000
DAY = 86_400_000
HEAD = {
    "format": "mcpace.recording/2",
    "instrument": "client",
    "started": "2026-11-25T23:59:59Z",
    "started_ns": 0,
    "mcpace": "0.1.0",
    "upstream": "http://user:hunter2@shop.example/mcp",
}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records two rounds of connect, list and call of mcpace's client."""
    folder = tmp_path_factory.mktemp("recording")
    words = ("--trials", 2, "--calls", 1, "--hold", "20ms", "--recordings", folder)
    made = mcpace("measure", "profile:notion", *words, folder=folder)
    assert made.code == 0, made.stderr
    return folder / "measure-profile-notion.jsonl.zst"


def written(path: Path, calls: list[tuple[float, bool, str]]) -> Path:
    """A recording of calls: start in milliseconds, whether the call returns, and its tool."""
    lines: list[dict[str, Any]] = [HEAD]
    for number, (at, is_ended, tool) in enumerate(calls, 1):
        start = {"call-start": {"call": number, "operation": "call", "tool": tool}}
        lines.append({"at": int(at * MILLISECOND), "event": start})
        if is_ended:
            end = {"call-end": {"call": number, "outcome": "ok"}}
            lines.append({"at": int((at + 2) * MILLISECOND), "event": end})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    dataset = pytest.importorskip("pyarrow.dataset")
    partitions = dataset.partitioning(flavor="hive")
    read = dataset.dataset(folder / table, format="parquet", partitioning=partitions).to_table().to_pylist()
    assert isinstance(read, list)
    return read


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_the_document_has_the_schema() -> None:
    page = (ROOT / "docs" / "parquet.md").read_text()
    assert document() in page
    named = set(re.findall(r"^\| `(\w+)` \|", page, re.M))
    assert named == {column.name for _, columns in TABLES.values() for column in columns} | {c.name for c in PARTITIONS}


def test_ledgers_add_up_and_exchanges_belong_to_calls(recording: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    done = mcpace("export", recording, "--parquet", "out", "--source", "notion", folder=tmp_path)
    assert done.code == 0, done.stderr
    calls, exchanges = rows(tmp_path / "out", "calls"), rows(tmp_path / "out", "exchanges")
    operations = [row["operation"] for row in sorted(calls, key=lambda row: row["started"])]
    assert [one for one in operations if one != "disconnect"] == ["connect", "list", "call"] * 2
    for row in calls:
        assert sum(row[part_column(part)] for part in PARTS) == row["duration_ns"]
        assert (row["outcome"], row["source"]) == ("ok", "notion")
    asked = [row for row in exchanges if row["method"] == "tools/call"]
    assert len(asked) == 2
    for row in asked:
        [call] = [one for one in calls if one["call"] == row["call"]]
        assert (call["operation"], call["tool"]) == ("call", row["name"])
        assert row["duration_ns"] > 0 and row["status"] == 200
    assert len({row["exchange"] for row in exchanges}) == len(exchanges)


def test_findings_have_their_costs_and_contexts(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    done = mcpace("export", looping(tmp_path / "loop.jsonl"), "--parquet", "out", folder=tmp_path)
    assert done.code == 0, done.stderr
    [finding] = [row for row in rows(tmp_path / "out", "findings") if row["code"] == "get-loop"]
    explained = json.loads(mcpace("explain", "loop.jsonl", "--json", folder=tmp_path).stdout)
    [told] = [one for case in explained["cases"] for one in case["findings"] if one["code"] == "get-loop"]
    assert json.loads(finding["context"]) == told["context"]
    assert (finding["severity"], finding["requests"]) == (told["severity"], told["total_requests"])


def test_a_second_export_replaces_the_first(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    calls = [(500.0, True, "a"), (1_500.0, True, "b"), (DAY + 1_500.0, False, "c")]
    path = written(tmp_path / "session.jsonl", calls[:1])
    assert mcpace("export", path, "--parquet", "out", folder=tmp_path).code == 0
    assert [Path(name).parts[:3] for name in files(tmp_path / "out")] == [
        ("calls", "day=2026-11-25", "source=shop.example-mcp")
    ]
    # The recording grows, is renamed, and gets another source.
    path = written(tmp_path / "renamed.jsonl", calls)
    done = mcpace("export", path, "--parquet", "out", "--source", "shop", folder=tmp_path)
    assert done.code == 0, done.stderr
    names = files(tmp_path / "out")
    assert [Path(name).parts[1:3] for name in names] == [
        (f"day=2026-11-{day}", "source=shop") for day in ("25", "26", "27")
    ]
    assert all(re.fullmatch(r"renamed-[0-9a-f]{12}\.parquet", Path(name).name) for name in names)
    found = sorted(rows(tmp_path / "out", "calls"), key=lambda row: row["started"])
    assert [(row["tool"], row["outcome"]) for row in found] == [("a", "ok"), ("b", "ok"), ("c", "open")]
    for name in names:
        file = tmp_path / "out" / name
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert parquet.read_schema(file).metadata[b"mcpace.schema"] == str(VERSION).encode()


def test_no_secret_and_no_endless_text_leaves(recording: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = written(tmp_path / "long.jsonl", [(1.0, True, "x" * 100_000)])
    assert mcpace("export", path, recording, "--parquet", "out", folder=tmp_path).code == 0
    table = rows(tmp_path / "out", "calls")
    assert max(len(str(row["tool"])) for row in table) == 1_024
    read = json.dumps([row for name in ("calls", "exchanges") for row in rows(tmp_path / "out", name)], default=str)
    assert "hunter2" not in read
    assert not re.findall(r"Bearer (?!\[redacted)|access_token=(?!\[redacted)|[?&]code=(?!\[redacted)", read)


def test_a_failed_export_leaves_the_earlier_files(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = written(tmp_path / "session.jsonl", [(1.0, True, "a")])
    assert mcpace("export", path, "--parquet", "out", folder=tmp_path).code == 0
    before = {name: (tmp_path / "out" / name).read_bytes() for name in files(tmp_path / "out")}
    # Half of the rows have been written when the impossible day comes.
    written(path, [(1.0, True, "a"), (9e12, True, "b")])
    refused = mcpace("export", path, "--parquet", "out", folder=tmp_path)
    assert refused.code == 2
    assert "times or sizes that no instrument writes" in refused.sentence()
    assert {name: (tmp_path / "out" / name).read_bytes() for name in files(tmp_path / "out")} == before


def test_a_broken_recording_of_a_folder_is_named_and_left_out(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    folder = tmp_path / "recordings"
    (folder / "deep").mkdir(parents=True)
    written(folder / "deep" / "good.jsonl", [(1.0, True, "a")])
    (folder / "broken.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfdgarbage")
    done = mcpace("export", "recordings", "--parquet", "out", folder=tmp_path)
    assert done.code == 0
    assert re.search(r"left out: .*broken\.jsonl\.zst", done.stderr), done.stderr
    assert len(rows(tmp_path / "out", "calls")) == 1
    (folder / "deep" / "good.jsonl").unlink()
    alone = mcpace("export", "recordings", "--parquet", "out", folder=tmp_path)
    assert alone.code == 2
    assert "broken.jsonl.zst" in alone.sentence()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--source", "x"), "--source belongs to --parquet"),
        (("--parquet", "a.jsonl"), "--parquet a.jsonl is a file: name a folder"),
        (("--parquet", "nowhere://x/y"), "--parquet nowhere://x/y can't be used"),
        (("--parquet", "s3://key:hunter2@bucket/x"), "has a user or a secret in its URL"),
        (("--har", "x.har", "b.jsonl"), "take one recording"),
    ],
)
def test_what_can_not_be_done_is_said(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    written(tmp_path / "a.jsonl", [(1.0, True, "a")])
    ended = mcpace("export", "a.jsonl", *words, folder=tmp_path, environment={"AWS_EC2_METADATA_DISABLED": "true"})
    assert ended.code == 2
    assert sentence in (ended.stderr if words[0] == "--har" else ended.sentence())
    assert "hunter2" not in ended.stderr


def test_an_empty_folder_is_said(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "none").mkdir()
    ended = mcpace("export", "none", "--parquet", "out", folder=tmp_path)
    assert (ended.code, "none has no recordings" in ended.sentence()) == (2, True)


def test_without_the_extra_one_line_says_how_to_install_it(tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl", [(1.0, True, "a")])
    # A module that fails as a missing one does.
    (tmp_path / "pyarrow.py").write_text("raise ModuleNotFoundError(\"No module named 'pyarrow'\", name='pyarrow')\n")
    path = {"PYTHONPATH": f"{tmp_path}:{ROOT / 'python'}"}
    ended = mcpace("export", "a.jsonl", "--parquet", "out", folder=tmp_path, environment=path)
    assert ended.code == 3
    assert ended.sentence().endswith("pip install 'mcpace[parquet]'")
