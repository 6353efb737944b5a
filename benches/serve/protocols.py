"""HTTP/1.1 and HTTP/2, each in clear text and over TLS, under h2load: 50 connections, or 5 of ten streams each.

Over TLS, all servers have the same certificate: a key on the curve P-256.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import call
import figures
from process import Process
from subjects import (
    BUILT,
    LEGACY,
    NGINX,
    PROTOCOLS,
    SERVERS,
    Missing,
    build_granian,
    build_mcpace,
    build_mcpace_python,
    build_nginx,
    build_protocols,
    serve,
)

BUILDS = [build_mcpace, build_mcpace_python, build_protocols, build_granian, build_nginx]
COLUMNS = (figures.Column("rps", "calls/s"), figures.Column("cpu_s", "CPU µs a call", 1e6))
WAYS = {
    "HTTP/1.1": ("http", ("--h1", "-c50")),
    "HTTP/2": ("http", ("-c5", "-m10")),
    "HTTP/1.1, TLS": ("https", ("--h1", "-c50")),
    "HTTP/2, TLS": ("https", ("-c5", "-m10")),
}
DONE = re.compile(r"finished in ([\d.]+)(m?s),.*?requests: .*? (\d+) succeeded, (\d+) failed", re.DOTALL)


def servers(reply: Path, certificate: str, key: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """The commands of each server in clear text and over TLS."""
    floor = (str(PROTOCOLS / "floor"), "{address}", str(reply))
    nginx = (sys.executable, NGINX, "{port}", str(BUILT / "nginx"))
    python = (sys.executable, *serve(f"{SERVERS / 'mcpace-python' / 'server.py'}:sync"))
    granian = (
        *(str(BUILT / "granian" / "bin" / "granian"), "--no-log", "--port", "{port}", "--loop", "uvloop"),
        str(SERVERS / "granian" / "server.py"),
    )
    echo = str(BUILT / "mcpace" / "release" / "examples" / "echo")
    return {
        "floor": {"http": floor, "https": (*floor, certificate, key)},
        "nginx": {"http": nginx, "https": (*nginx, certificate, key)},
        "mcpace-rust": {
            "http": (echo, "{address}", "json", "stateless"),
            "https": (str(PROTOCOLS / "echo"), "{address}", certificate, key),
        },
        "mcpace-python-sync": {
            "http": python,
            "https": (*python, "--ssl-certfile", certificate, "--ssl-keyfile", key),
        },
        "granian": {"http": granian, "https": (*granian, "--ssl-certificate", certificate, "--ssl-keyfile", key)},
    }


def measure(rounds: int, seconds: int, folder: Path) -> list[figures.Row]:
    """A row for each server and protocol. nginx 1.22 speaks HTTP/2 over TLS only, as it is set up here."""
    if shutil.which("h2load") is None:
        raise Missing("h2load is missing: apt install nghttp2-client; or leave this part out with --only")
    certificate, key = self_signed(folder)
    (folder / "reply").write_text('{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}')
    (folder / "call").write_text(call.body(call.Call(LEGACY)))
    with ExitStack() as started:
        cases = []
        running = {}
        for name, commands in servers(folder / "reply", certificate, key).items():
            for scheme, command in commands.items():
                running[name, scheme] = started.enter_context(Process(command))
                running[name, scheme].wait_until_it_listens()
        for way, (scheme, options) in WAYS.items():
            for name, commands in servers(folder / "reply", certificate, key).items():
                if scheme not in commands or (name, way) == ("nginx", "HTTP/2"):
                    continue
                row = {"case": way, "name": name, "base": "floor"}
                server = running[name, scheme]

                def once(server=server, scheme=scheme, options=options) -> dict[str, float]:
                    return under_load(server, scheme, options, seconds, folder)

                under_load(server, scheme, options, 1, folder)
                cases.append((row, once))
        return figures.in_turn(rounds, cases)


def under_load(server: Process, scheme: str, options: tuple[str, ...], seconds: int, folder: Path) -> dict[str, float]:
    """One run of h2load. Refuses a run with failed calls, whose figures would be misleading."""
    fields = [part for name, value in call.headers(call.Call(LEGACY)).items() for part in ("-H", f"{name}: {value}")]
    url = f"{scheme}://127.0.0.1:{server.port}/mcp"
    command = ("h2load", "-t1", f"-D{seconds}", *options, "-d", str(folder / "call"), *fields, url)
    before = server.cpu_s()
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
    cpu_s = server.cpu_s() - before
    found = DONE.search(done.stdout)
    if found is None or int(found[4]) or not int(found[3]):
        raise RuntimeError(f"{' '.join(command)}: {done.stdout[-800:]}{done.stderr[-500:]}")
    lasted_s = float(found[1]) * (0.001 if found[2] == "ms" else 1)
    return {"rps": int(found[3]) / lasted_s, "cpu_s": cpu_s / int(found[3])}


def self_signed(folder: Path) -> tuple[str, str]:
    """A certificate for this run and its key."""
    certificate, key = str(folder / "certificate.pem"), str(folder / "key.pem")
    command = (
        *(
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ),
        *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate),
    )
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    return certificate, key
