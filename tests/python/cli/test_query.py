"""``mcpace query``: questions to exported tables, and the statements of a user."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from test_export_tables import written

from mcpace.lab.errors import UsageProblem
from support.commands import COMMAND, LIMIT_S, Ended
from support.commands import run as mcpace
from support.exported_tables import FIRST, exchange, write_table

pytest.importorskip("duckdb")
parquet = pytest.importorskip("pyarrow.parquet")
SINCE = FIRST + timedelta(days=8)
ENDLESS = "SELECT count(*) FROM range(1000000000000) WHERE hash(range) = 0"
HOSTILE = "x\x1b]0;y\x07\x9b31m\u202e<script>alert(1)</script>\r\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen days of two tools of one server; since the ninth day, ``search`` takes twice as long."""
    place = tmp_path_factory.mktemp("query")
    dice = random.Random(1)
    rows = []
    for day in range(16):
        for name, factor in (("search", 2.0 if day >= 8 else 1.0), ("read", 1.0)):
            level = dice.lognormvariate(0, 0.1)
            for number in range(40):
                at = FIRST + timedelta(days=day, seconds=7 * number)
                took = 10 * factor * level * dice.lognormvariate(0, 0.2)
                rows.append(exchange(at, took, name, recording=f"{day:012x}", reply_bytes=number))
    write_table(place / "tables", "exchanges", rows, "github")
    odd = [exchange(FIRST, 5.0, HOSTILE), exchange(FIRST, None, "hung"), exchange(FIRST, 0.5, "broken", failed=True)]
    write_table(place / "tables", "exchanges", odd, "shop")
    cost = {"code": "get-loop", "started": FIRST, "calls": 10, "time_ns": 30 * 10**9, "requests": 40}
    write_table(place / "tables", "findings", [cost, {**cost, "calls": 0, "recording": "f" * 12}], "shop")
    write_table(place / "tables", "findings", [{**cost, "code": "client-time-out", "time_ns": 1}], "github")
    waits = {"tool": "buy", "kind": "http", "started": FIRST, "calls": 4, "requests": 8}
    found = [{**waits, "name": "api.example.org", "waiting_ns": 6 * 10**9}, {**waits, "name": HOSTILE, "waiting_ns": 7}]
    write_table(place / "tables", "dependencies", found, "shop")
    return place


def ask(folder: Path, *words: object) -> Ended:
    ended = mcpace("query", "tables", *words, folder=folder)
    assert ended.code == 0, ended.stderr
    return ended


def rows(folder: Path, *words: object) -> list[dict[str, Any]]:
    """The rows of the only answer, from ``--json``."""
    [answer] = json.loads(ask(folder, *words, "--json").stdout)["answers"]
    return [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]]


def exact(values: list[int], share: float) -> int:
    ordered = sorted(values)
    return ordered[max(1, -(-round(share * 1000) * len(ordered) // 1000)) - 1]


def test_latency_has_the_percentiles_of_all_replies(folder: Path) -> None:
    found = {row["request"]: row for row in rows(folder, "latency")}
    durations = [
        row["duration_ns"]
        for file in sorted((folder / "tables" / "exchanges").glob("day=*/source=github/*.parquet"))
        for row in parquet.read_table(file, partitioning=None).to_pylist()
        if row["name"] == "search"
    ]
    search = found["search"]
    assert (search["source"], search["requests"], search["failed"]) == ("github", 640, 0)
    assert search["p50_ns"] == pytest.approx(exact(durations, 0.5), rel=5e-3)
    assert search["p99_ns"] == pytest.approx(exact(durations, 0.99), rel=5e-3)
    assert search["total_ns"] == sum(durations)
    # Neither a failure nor a missing reply is part of a percentile, and p99 needs a hundred replies.
    for name, failed in (("broken", 1), ("hung", 0)):
        one = found[name]
        figures = [one[column] for column in ("requests", "failed", "p50_ns", "p99_ns", "total_ns")]
        assert figures == [1, failed, None, None, None]
    assert found[HOSTILE]["p99_ns"] is None and found[HOSTILE]["p50_ns"] == 5_000_000


def test_since_and_source_choose_rows(folder: Path) -> None:
    found = rows(folder, "latency", "--since", "2026-11-09", "--source", "github")
    assert {row["request"]: row["requests"] for row in found} == {"search": 320, "read": 320}
    late = "2026-11-09T00:01:01"
    assert {row["requests"] for row in rows(folder, "latency", "--since", late)} == {311}
    assert rows(folder, "latency", "--source", "nobody") == []


def test_slower_names_the_tool_that_got_slower_alone(folder: Path) -> None:
    found = rows(folder, "slower", "--since", str(SINCE.date()))
    of = {(row["request"], row["percentile"]): row for row in found}
    search, read = of["search", "p50"], of["read", "p50"]
    assert (search["before"], search["since"], search["verdict"]) == (320, 320, "slower")
    assert 1.5 < search["low"] < search["ratio"] < search["high"] < 2.5
    assert read["low"] < 1 < read["high"] and read["verdict"] in ("same", "unclear")
    printed = ask(folder, "slower", "--since", str(SINCE.date())).stdout
    assert "1 got slower: github search (p50 " in printed and "95 % interval" in printed
    # Three days before are three clusters, which is too few for an interval.
    short = rows(folder, "slower", "--since", str(SINCE.date()), "--before", "3d")
    assert {(row["before"], row["low"], row["verdict"]) for row in short} == {(120, None, "unclear")}


def test_findings_and_dependencies_are_ordered_by_cost(folder: Path) -> None:
    loop, late = rows(folder, "findings")
    assert (loop["code"], loop["recordings"], loop["calls"], loop["time_ns"]) == ("get-loop", 2, 10, 60 * 10**9)
    # The cost of calls only, and not that outside of calls.
    assert (loop["per_call_ns"], loop["requests"], loop["most_at"]) == (3 * 10**9, 80, "shop")
    assert late["code"] == "client-time-out"
    api, other = rows(folder, "dependencies")
    assert (api["name"], api["waiting_ns"], api["per_call_ns"]) == ("api.example.org", 6 * 10**9, 1_500_000_000)
    assert (api["most_at"], other["waiting_ns"]) == ("shop buy", 7)


def test_all_questions_fit_on_80_columns_and_are_on_the_page(folder: Path, tmp_path: Path) -> None:
    words = ("--since", str(FIRST.date()), "--html", tmp_path / "page.html", "--out", tmp_path / "run.json")
    ended = ask(folder, *words)
    lines = ended.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    for title in ("Requests by server and tool", "Findings by cost", "Dependencies by the time"):
        assert any(line.startswith(title) for line in lines), ended.stdout
    assert not set("\x1b\x07\x9b\u202e\r") & set(ended.stdout)
    page = (tmp_path / "page.html").read_text()
    assert "Requests by server and tool" in page and "<script>alert" not in page
    assert "connect-src" not in page and "default-src 'none'" in page
    shown = mcpace("report", tmp_path / "run.json", folder=tmp_path)
    assert (shown.code, shown.stdout) == (0, ended.stdout)


def test_csv_has_the_rows_without_control_characters(folder: Path) -> None:
    printed = ask(folder, "latency", "--csv").stdout
    assert not set("\x1b\x07\x9b\u202e\r") & set(printed)
    found = list(csv.DictReader(io.StringIO(printed)))
    search = next(row for row in found if row["request"] == "search")
    assert (search["source"], search["requests"]) == ("github", "640")
    sql = "SELECT day, name, count(*) AS n FROM exchanges GROUP BY ALL ORDER BY day, n DESC, name DESC"
    first, *_ = csv.DictReader(io.StringIO(ask(folder, "--sql", sql, "--csv").stdout))
    assert first == {"day": "2026-11-01", "name": "search", "n": "40"}


def test_a_formula_in_csv_is_text(folder: Path) -> None:
    sql = "SELECT unnest(['=1+1', '+1', '-1', '@SUM(1)', chr(9) || '=1', '1=1']) AS text, -1 AS number"
    found = list(csv.reader(io.StringIO(ask(folder, "--sql", sql, "--csv").stdout)))[1:]
    assert found == [[text, "-1"] for text in ("'=1+1", "'+1", "'-1", "'@SUM(1)", "'=1", "1=1")]


def test_a_closed_stdout_is_no_failure(folder: Path) -> None:
    for words in (("latency",), ("latency", "--csv"), ("--sql", "SELECT range FROM range(1000000)", "--csv")):
        command = [*COMMAND, "query", "tables", *words]
        closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
        done = subprocess.run(closed, cwd=folder, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stderr is not None and process.stdout.read(5)
            process.stdout.close()
            assert (process.stderr.read(), process.wait(LIMIT_S)) == (b"", 0)


def test_keys_of_maps_are_text(folder: Path) -> None:
    sql = "SELECT MAP {'2026-11-01'::DATE: [MAP {1.5: 'x'::BLOB}]} AS m"
    assert rows(folder, "--sql", sql) == [{"m": '{"2026-11-01": [{"1.5": "b\'x\'"}]}'}]


def test_sql_reads_the_tables_with_their_documented_types(folder: Path) -> None:
    [row] = rows(
        folder,
        "--sql",
        "SELECT day, typeof(day) AS type, source, started, duration_ns AS took_ns, failed, [1, 2] AS list, "
        "0.5 AS half, 10::HUGEINT ** 30 AS h FROM exchanges WHERE name = 'broken'",
    )
    assert (
        (row["day"], row["type"]) == ("2026-11-01", "VARCHAR")
        and row["source"] == "shop"
        and row["started"] == "2026-11-01T00:00:00Z"
    )
    assert (row["took_ns"], row["failed"], row["list"], row["half"]) == (500_000, True, "[1, 2]", 0.5)
    assert float(row["h"]) == 1e30
    # A table without files has its columns and no rows.
    assert rows(folder, "--sql", "SELECT count(*) AS n, count(unaccounted_ns) AS m FROM calls") == [{"n": 0, "m": 0}]


def test_sql_prints_no_more_rows_than_it_says(folder: Path) -> None:
    printed = ask(folder, "--sql", "SELECT range AS n FROM range(20000)")
    assert "More than 10,000 rows" in printed.stdout and len(printed.stdout.splitlines()) < 40
    assert len(rows(folder, "--sql", "SELECT range AS n FROM range(20000)")) == 10_000
    assert len(ask(folder, "--sql", "SELECT range AS n FROM range(20000)", "--csv").stdout.splitlines()) == 20_001


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("SELECT * FROM read_csv('/etc/passwd')", "cannot use the table function read_csv"),
        ("SELECT 1 WHERE EXISTS (FROM READ_TEXT('/etc/passwd'))", "cannot use the table function read_text"),
        ("SELECT * FROM '/etc/passwd'", "does not exist"),
        ("SELECT * FROM '/etc/passwd.parquet'", "file system operations are disabled"),
        ("SELECT * FROM connection", "does not exist"),
        ("COPY (SELECT 1) TO 'stolen.csv'", "one SELECT"),
        ("EXPLAIN ANALYZE COPY (SELECT 1) TO 'stolen.csv'", "one SELECT"),
        ("SELECT * FROM query('COPY (SELECT 1) TO ''stolen.csv''')", "cannot use the table function query"),
        ("WITH x AS (COPY (SELECT 1) TO 'stolen.csv') SELECT 1", "one SELECT"),
        ("SELECT 1 FROM (WITH x AS (DELETE FROM calls RETURNING *) FROM x)", "one SELECT"),
        ("INSTALL httpfs", "one SELECT"),
        ("LOAD httpfs", "one SELECT"),
        ("ATTACH 'other.db'", "one SELECT"),
        ("SET enable_external_access = true", "one SELECT"),
        ("CREATE TABLE x AS SELECT 1", "one SELECT"),
        ("DROP VIEW calls", "one SELECT"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("", "one SELECT"),
        ("SELEC 1", "syntax error"),
        ("SELECT nothing FROM calls", "not found"),
        ("SELECT * FROM callz", 'Did you mean "calls"'),
        (f"SELECT {'+'.join('1' * 900)}", "nested too deeply"),
        ("SELECT '\udcff'", "must be UTF-8 text"),
    ],
)
def test_a_statement_reads_the_tables_and_nothing_else(sql: str, sentence: str, folder: Path) -> None:
    ended = mcpace("query", "tables", "--sql", sql, folder=folder)
    assert (ended.code, ended.stdout) == (2, "")
    assert ended.sentence().startswith("--sql") and sentence in ended.sentence()
    assert sorted(one.name for one in folder.iterdir()) == ["tables"]


@pytest.mark.parametrize(
    "sql",
    [
        "WITH x AS MATERIALIZED ({copy}) SELECT * FROM x",
        "SELECT * FROM query('WITH x AS ({copy_text}) SELECT * FROM x')",
        "SELECT * FROM system.main.\"JSON_Execute_Serialized_SQL\"('{tree}')",
    ],
)
def test_a_statement_does_not_write_the_files_of_the_tables(sql: str, folder: Path, tmp_path: Path) -> None:
    import duckdb

    file = damaged(folder, tmp_path)
    held = file.read_bytes()
    copy = f"COPY (SELECT 1) TO '{file}' (FORMAT csv, USE_TMP_FILE false)"
    with duckdb.connect() as other:
        [tree] = other.execute("SELECT json_serialize_sql(?)", [f"WITH x AS ({copy}) FROM x"]).fetchone() or [""]
    text = sql.format(copy=copy, copy_text=copy.replace("'", "''"), tree=tree.replace("'", "''"))
    ended = mcpace("query", "tables", "--sql", text, folder=tmp_path)
    assert (ended.code, ended.stdout) == (2, "") and ended.sentence()
    assert file.read_bytes() == held


def test_statements_that_read_are_allowed(folder: Path) -> None:
    for sql, found in (
        ("SHOW TABLES", 4),
        ("SUMMARIZE calls", 18),
        ("SELECT r.range, u FROM range(3) r, unnest([1, 2]) x(u)", 6),
        ("WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 3) FROM t UNION SELECT 9", 4),
        ('SELECT key FROM json_each(\'{"a": "COPY_NODE"}\')', 1),
    ):
        assert len(rows(folder, "--sql", sql)) == found, sql


def test_duckdb_itself_refuses_to_write_and_to_change_its_configuration(folder: Path) -> None:
    import duckdb

    from mcpace.lab.tables.read import open_tables

    with open_tables(str(folder / "tables"), 60.0) as tables:
        assert tables.rows("SELECT count(*) FROM exchanges") == [(1283,)]
        # Variables of this program are no tables.
        assert tables.rows("SELECT current_setting('python_enable_replacements')") == [(False,)]
        for statement, sentence in (
            (f"COPY (SELECT 1) TO '{folder}/stolen.csv'", "disabled by configuration"),
            ("SELECT * FROM read_csv('/etc/passwd')", "disabled by configuration"),
            ("SELECT * FROM glob('/etc/*')", "disabled by configuration"),
            ("SELECT * FROM read_parquet('https://127.0.0.1:9/x.parquet')", "disabled by configuration"),
            ("INSTALL httpfs", "disabled"),
            ("LOAD httpfs", "disabled"),
            ("SET enable_external_access = true", "locked"),
            ("SET allowed_paths = ['/etc/passwd']", "locked"),
            ("RESET lock_configuration", "locked"),
        ):
            with pytest.raises(duckdb.Error, match=sentence):
                tables.connection.execute(statement)
    assert not (folder / "stolen.csv").exists()


def test_a_statement_has_a_time_limit(folder: Path) -> None:
    ended = mcpace("query", "tables", "--sql", ENDLESS, "--timeout", "200ms", folder=folder)
    assert (ended.code, ended.stdout) == (3, "")
    assert "took longer than 0.2 s" in ended.sentence()


def test_ctrl_c_ends_a_statement(folder: Path) -> None:
    from mcpace.lab.tables.read import open_tables

    # The statement has no end, so it runs when the signal comes.
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    limit_s = 60.0
    begun = time.monotonic()
    with open_tables(str(folder / "tables"), limit_s) as tables, pytest.raises(KeyboardInterrupt):
        timer.start()
        tables.select(ENDLESS)
    assert time.monotonic() - begun < limit_s


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nowhere",), "nowhere is not there: name a folder of tables"),
        (("file",), "file is no folder"),
        (("empty",), "empty has no tables: mcpace export RECORDING --parquet empty writes them"),
        (("tables", "latencey"), "unknown question 'latencey'; did you mean latency?"),
        (("tables", "slower"), "slower needs --since"),
        (("tables", "latency", "--since", "yesterday"), "'yesterday' is no time: write 7d"),
        (("tables", "latency", "--since", "7y"), "'7y' is no age: write 24h, 7d or 2w"),
        (("tables", "latency", "--since", "999999w"), "'999999w' is no time"),
        (("tables", "slower", "--since", "0001-01-02", "--before", "7d"), "--before 7d begins before the first year"),
        (("tables", "latency", "--before", "7d"), "--before belongs to the question slower"),
        (("tables", "latency", "--sql", "SELECT 1"), "give a question or --sql, not both"),
        (("tables", "--sql", "SELECT 1", "--since", "7d"), "write them into the statement"),
        (("tables", "--csv"), "--csv takes one question"),
        (("tables", "latency", "--csv", "--json"), "leave out --json"),
        (("tables", "latency", "--source", "\udcff"), "--source must be UTF-8 text"),
        (("day=2026-11-01",), "has = in its path"),
        (("linked",), "linked has no tables"),
    ],
)
def test_bad_input_is_one_sentence(words: tuple[str, ...], sentence: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "tables").symlink_to(folder / "tables")
    shutil.copytree(folder / "tables" / "findings", tmp_path / "day=2026-11-01" / "findings")
    # Links within the folder are not followed.
    (tmp_path / "linked" / "exchanges").mkdir(parents=True)
    (tmp_path / "linked" / "exchanges" / "day=2026-11-01").symlink_to(
        folder / "tables" / "exchanges" / "day=2026-11-01"
    )
    (tmp_path / "linked" / "findings").symlink_to(folder / "tables" / "findings")
    ended = mcpace("query", *words, folder=tmp_path)
    assert (ended.code, ended.stdout) == (2, "")
    assert sentence in ended.sentence()


def damaged(folder: Path, tmp_path: Path) -> Path:
    """A copy of the tables, and one of its files, which the caller damages."""
    shutil.copytree(folder / "tables", tmp_path / "tables")
    [file] = (tmp_path / "tables" / "dependencies").glob("*/*/*.parquet")
    return file


def test_a_truncated_file_is_named(folder: Path, tmp_path: Path) -> None:
    file = damaged(folder, tmp_path)
    file.write_bytes(file.read_bytes()[:-20])
    ended = mcpace("query", "tables", folder=tmp_path)
    assert (ended.code, ended.stdout) == (2, "")
    assert str(file) in ended.sentence() and "is no whole Parquet file: export its recording again" in ended.sentence()


def test_places_that_cannot_be_read_are_named(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpace.lab.tables.read import open_tables

    file = damaged(folder, tmp_path)
    file.write_bytes(file.read_bytes()[:-20])

    def refuse(place: object, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(place))

    tables = str(tmp_path / "tables")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", refuse)
        with pytest.raises(UsageProblem, match=f"cannot read {file}: Permission denied"), open_tables(tables, 1.0):
            pass
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda place: (refuse if "day=" in str(place) else scandir)(place))
    with pytest.raises(UsageProblem, match=r"cannot read .*day=.*: Permission denied"), open_tables(tables, 1.0):
        pass


def test_damaged_pages_are_one_sentence(folder: Path, tmp_path: Path) -> None:
    file = damaged(folder, tmp_path)
    held = bytearray(file.read_bytes())
    held[4:400] = bytes(396)
    file.write_bytes(held)
    ended = mcpace("query", "tables", "dependencies", folder=tmp_path)
    assert (ended.code, ended.stdout) == (2, "")
    assert ended.sentence()


@pytest.mark.parametrize(
    ("version", "sentence"),
    [("2", "has version 2 of the schema, and this mcpace reads up to 1"), (None, "was not written by mcpace export")],
)
def test_a_schema_from_the_future_is_refused(version: str | None, sentence: str, folder: Path, tmp_path: Path) -> None:
    file = damaged(folder, tmp_path)
    table = parquet.read_table(file, partitioning=None)
    metadata = {**table.schema.metadata, b"mcpace.schema": (version or "").encode()}
    parquet.write_table(table.replace_schema_metadata(metadata if version else None), file)
    ended = mcpace("query", "tables", folder=tmp_path)
    assert (ended.code, ended.stdout) == (2, "")
    assert str(file) in ended.sentence() and sentence in ended.sentence()


def test_files_without_a_column_and_with_a_new_one_are_read(folder: Path, tmp_path: Path) -> None:
    file = damaged(folder, tmp_path)
    table = parquet.read_table(file, partitioning=None).drop_columns(["requests", "calls"])
    parquet.write_table(table.append_column("newer", table.column("name")), file)
    statement = "SELECT requests, calls, newer FROM dependencies WHERE waiting_ns > 7 ORDER BY started"
    changed = {"requests": None, "calls": None, "newer": "api.example.org"}
    assert rows(tmp_path, "--sql", statement) == [changed]
    assert rows(tmp_path, "dependencies")[0]["requests"] is None
    later = {"started": SINCE, "waiting_ns": 9, "requests": 3, "calls": 2}
    write_table(tmp_path / "tables", "dependencies", [later], "shop")
    assert rows(tmp_path, "--sql", statement) == [changed, {"requests": 3, "calls": 2, "newer": None}]


def test_odd_names_of_folders_are_read_as_they_are(tmp_path: Path) -> None:
    place = tmp_path / "t[1]*'?"
    write_table(place / "tables", "exchanges", [exchange(FIRST, 5.0)])
    # The name is also a pattern, which matches this one.
    write_table(tmp_path / "t1xx'y" / "tables", "exchanges", [exchange(FIRST, 5.0), exchange(FIRST, 6.0)])
    assert rows(place, "latency")[0]["requests"] == 1


def test_exported_recordings_are_asked(tmp_path: Path) -> None:
    path = written(tmp_path / "session.jsonl", [(1.0, True, "a"), (5.0, True, "a")])
    assert mcpace("export", path, "--parquet", "tables", folder=tmp_path).code == 0
    assert rows(tmp_path, "--sql", "SELECT tool, count(*) AS n FROM calls GROUP BY tool") == [{"tool": "a", "n": 2}]
    assert "The tables have no requests in this time." in ask(tmp_path).stdout


def test_without_the_extra_one_line_says_how_to_install_it(folder: Path, tmp_path: Path) -> None:
    # A module that fails as a missing one does.
    (tmp_path / "duckdb.py").write_text("raise ModuleNotFoundError(\"No module named 'duckdb'\", name='duckdb')\n")
    path = {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[3] / 'python'}"}
    ended = mcpace("query", "tables", folder=folder, environment=path)
    assert ended.code == 3
    assert ended.sentence().endswith("pip install 'mcpace[parquet]'")
