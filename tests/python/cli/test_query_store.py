"""``mcpace query`` of tables in an S3 store: moto's server on a socket."""

from __future__ import annotations

import os
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from test_export_tables import written

from mcpace.lab.errors import LabError, UsageProblem
from support.commands import run as mcpace
from support.exported_tables import FIRST, exchange, write_table

pytest.importorskip("duckdb")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
fs = pytest.importorskip("pyarrow.fs")
moto = pytest.importorskip("moto.server")
SECRET = "hunter2"
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a store with the bucket ``bucket``: three days of one tool in ``s3://bucket/tables``."""
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "AKIDTEST",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/bucket", method="PUT")).close()
        folder = tmp_path_factory.mktemp("store")
        write_table(folder, "exchanges", [exchange(FIRST + timedelta(days=day), 5.0 + day) for day in range(3)])
        system, _ = fs.FileSystem.from_uri("s3://bucket")
        fs.copy_files(str(folder), "bucket/tables", destination_filesystem=system)
        yield environment
    server.stop()


@pytest.fixture
def tables(store: dict[str, str], request: pytest.FixtureRequest) -> str:
    """A copy of the tables in a folder of its own."""
    system, _ = fs.FileSystem.from_uri("s3://bucket")
    place = f"bucket/{abs(hash(request.node.name))}"
    fs.copy_files("bucket/tables", place, source_filesystem=system, destination_filesystem=system)
    return f"s3://{place}"


def put(place: str, table: str, data: bytes, day: str = "2026-11-01") -> None:
    system, root = fs.FileSystem.from_uri(f"{place}/{table}/day={day}/source=shop/other.parquet")
    with system.open_output_stream(root) as file:
        file.write(data)


def ask(place: str, sql: str = "SELECT count(*) FROM exchanges", **options: Any) -> list[tuple[Any, ...]]:
    from mcpace.lab.tables.read import open_tables

    with open_tables(place, 60.0, **options) as opened:
        return opened.rows(sql)


def encoded(metadata: dict[bytes, bytes]) -> bytes:
    """A file with this metadata and one column."""
    sink = pyarrow.BufferOutputStream()
    table = pyarrow.table({"name": ["x"]})
    parquet.write_table(table.replace_schema_metadata(metadata), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def test_tables_of_a_store_have_the_rows_of_a_folder(store: dict[str, str], tmp_path: Path) -> None:
    path = written(tmp_path / "session.jsonl", [(1.0, True, "a"), (5.0, True, "b")])
    for place in ("s3://bucket/exported", "folder"):
        done = mcpace("export", path, "--parquet", place, folder=tmp_path, environment=store)
        assert done.code == 0, done.stderr
    sql = "SELECT * FROM calls ORDER BY started"
    found, same = (
        mcpace("query", place, "--sql", sql, "--csv", folder=tmp_path, environment=store)
        for place in ("s3://bucket/exported", "folder")
    )
    assert (found.code, len(found.stdout.splitlines()), found.stderr) == (0, 3, "")
    assert found.stdout == same.stdout


def test_files_of_earlier_days_and_other_tables_are_not_opened(tables: str) -> None:
    put(tables, "exchanges", b"PAR1 is the beginning of a file that is cut off", "2026-11-01")
    put(tables, "findings", b"", "2026-11-02")
    since = date(2026, 11, 2)
    assert ask(tables, needed=["exchanges"], since=since) == [(2,)]
    assert ask(tables, needed=["exchanges"], since=date(2027, 1, 1)) == [(0,)]
    for options, table in (({"needed": ["exchanges"]}, "exchanges"), ({"since": since}, "findings")):
        with pytest.raises(UsageProblem, match=rf"{tables}/{table}/.*other\.parquet is no whole Parquet file"):
            ask(tables, **options)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (lambda: encoded({b"mcpace.schema": b"1"})[:-20], "is no whole Parquet file: export its recording again"),
        (lambda: encoded({}), "was not written by mcpace export"),
        (lambda: encoded({b"mcpace.schema": b"2"}), "has version 2 of the schema, and this mcpace reads up to 1"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(data: Any, sentence: str, tables: str) -> None:
    put(tables, "calls", data())
    with pytest.raises(UsageProblem, match=rf"{tables}/calls/day=2026-11-01/.*other\.parquet {sentence}"):
        ask(tables)


def test_files_without_a_column_and_with_a_new_one_are_read(tables: str) -> None:
    sink = pyarrow.BufferOutputStream()
    table = pyarrow.table({"name": ["late"], "newer": [7]})
    parquet.write_table(table.replace_schema_metadata({b"mcpace.schema": b"1"}), sink)
    put(tables, "exchanges", sink.getvalue().to_pybytes())
    sql = "SELECT day, source, duration_ns, newer FROM exchanges WHERE name = 'late' OR day > '2026-11-02' ORDER BY day"
    assert ask(tables, sql) == [("2026-11-01", "shop", None, 7), ("2026-11-03", "shop", 7_000_000, None)]
    put(tables, "exchanges", encoded({b"mcpace.schema": b"1"}), "2026-11-02")
    other = pyarrow.BufferOutputStream()
    wrong = pyarrow.table({"duration_ns": ["x"]})
    parquet.write_table(wrong.replace_schema_metadata({b"mcpace.schema": b"1"}), other)
    put(tables, "exchanges", other.getvalue().to_pybytes())
    with pytest.raises(UsageProblem, match=r"the column duration_ns is string in s3://.*, and int64 elsewhere"):
        ask(tables)


@pytest.mark.parametrize(
    ("place", "kind", "sentence"),
    [
        ("s3://bucket/nothing", UsageProblem, "s3://bucket/nothing has no tables: mcpace export RECORDING"),
        ("s3://", UsageProblem, "names no bucket"),
        ("s3://key:hunter2@bucket/tables", UsageProblem, "has a user or a secret in its URL"),
        ("s3://bucket/x?token=hunter2", UsageProblem, "can't be used"),
        ("nowhere://x/y?token=hunter2", UsageProblem, "nowhere://x/y.token=… can't be used"),
        ("s3://nobody/tables", LabError, "cannot read s3://nobody/tables: .*bucket does not exist"),
    ],
)
def test_a_place_that_cannot_be_used_is_one_sentence(
    place: str, kind: type[LabError], sentence: str, store: dict[str, str]
) -> None:
    with pytest.raises(LabError, match=sentence) as caught:
        ask(place)
    assert type(caught.value) is kind and SECRET not in str(caught.value) and "\n" not in str(caught.value)


def test_secrets_that_a_store_repeats_are_not_shown(store: dict[str, str]) -> None:
    from mcpace.lab.tables.object_store import reason

    assert reason(OSError(f"no key {SECRET} here\nmore")) == "no key … here"


def test_a_file_that_is_removed_meanwhile_is_a_failure_of_the_store(tables: str) -> None:
    from mcpace.lab.tables.read import open_tables

    with open_tables(tables, 60.0) as opened:
        system, root = fs.FileSystem.from_uri(tables)
        system.delete_dir(root)
        with pytest.raises(LabError, match=r"cannot read the table exchanges of the store: .*GetObject") as caught:
            opened.rows("SELECT max(duration_ns) FROM exchanges")
        assert not isinstance(caught.value, UsageProblem)
        # DuckDB itself opens no network and no file.
        for statement in ("SELECT * FROM read_parquet('https://127.0.0.1:9/x.parquet')", "COPY (SELECT 1) TO 'x.csv'"):
            with pytest.raises(Exception, match="disabled by configuration"):
                opened.connection.execute(statement)


def test_a_store_that_does_not_answer_ends_with_the_limit(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "AWS_ACCESS_KEY_ID": "AKIDTEST",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }
        words = ("query", "s3://bucket/tables", "--timeout", "300ms")
        ended = mcpace(*words, folder=tmp_path, environment={**os.environ, **environment})
    assert (ended.code, ended.stdout) == (3, "")
    assert ended.sentence().startswith("reading the list of files in s3://bucket/tables took longer than 0.3 s")


@pytest.mark.parametrize(
    ("answered", "sentence"),
    [(0, "reading the list of files in s3://bucket/tables took longer"), (3, "the question took longer than")],
)
def test_a_store_that_stops_answering_ends_with_the_limit(
    answered: int, sentence: str, store: dict[str, str], tmp_path: Path
) -> None:
    with stalling_store(store["AWS_ENDPOINT_URL"], answered) as endpoint:
        words = ("query", "s3://bucket/tables", "latency", "--timeout", "2s")
        ended = mcpace(*words, folder=tmp_path, environment={**os.environ, **store, "AWS_ENDPOINT_URL": endpoint})
    assert (ended.code, ended.stdout) == (3, "")
    assert ended.sentence().startswith(sentence)


@contextmanager
def stalling_store(upstream: str, answered: int) -> Iterator[str]:
    """The URL of a store that gives so many parts of files, and then no more."""
    left = threading.Semaphore(answered)
    end = threading.Event()

    class Stalling(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if ".parquet" in self.path.partition("?")[0] and not left.acquire(blocking=False):
                end.wait(LIMIT_S)
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
            request = urllib.request.Request(upstream + self.path, headers=headers, method=self.command)
            try:
                reply = urllib.request.urlopen(request, timeout=LIMIT_S)
            except urllib.error.HTTPError as error:
                reply = error
            with reply:
                body = reply.read()
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    if name.lower() not in ("connection", "transfer-encoding"):
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Stalling) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            end.set()
            server.shutdown()
