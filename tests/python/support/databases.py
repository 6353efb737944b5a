"""A temporary PostgreSQL server for tests, with its data in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from support import ports

LIMIT_S = 120


def programs() -> Path | None:
    """Returns the folder of the newest PostgreSQL's programs."""
    # Debian has them in a folder of each version's, which no PATH has.
    there = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda one: float(one.parts[-3]))
    found = str(there[-1]) if there else shutil.which("initdb")
    return Path(found).parent if found is not None else None


@contextmanager
def postgresql() -> Iterator[dict[str, str]]:
    """Runs the server and yields its address, in the variables that the example's settings read."""
    folder = programs()
    if folder is None:
        # Not silently: what is tested on PostgreSQL is tested nowhere else.
        pytest.fail("PostgreSQL is not installed: apt-get install postgresql")
    # It refuses to be root's.
    owner = _owner()
    place = Path(tempfile.mkdtemp(prefix="mcpace-pg-", dir="/tmp"))
    place.chmod(0o755)
    data = place / "data"
    data.mkdir()
    if owner is not None:
        shutil.chown(data, owner)
        shutil.chown(place, owner)
    port = ports.free()

    def run(*words: str) -> None:
        subprocess.run(words, check=True, timeout=LIMIT_S, capture_output=True, user=owner, cwd=place)

    try:
        run(str(folder / "initdb"), "-D", str(data), "-U", "invoices", "-A", "trust", "--no-sync")
        options = f"-c listen_addresses=127.0.0.1 -p {port} -k {place} -c fsync=off -c max_connections=60"
        run(str(folder / "pg_ctl"), "-D", str(data), "-w", "-o", options, "-l", str(place / "log"), "start")
        try:
            with psycopg.connect(
                host="127.0.0.1", port=port, user="invoices", dbname="postgres", autocommit=True
            ) as one:
                one.execute("CREATE DATABASE invoices")
            yield {"DATABASE_HOST": "127.0.0.1", "DATABASE_PORT": str(port)}
        finally:
            run(str(folder / "pg_ctl"), "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _owner() -> str | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    return None
