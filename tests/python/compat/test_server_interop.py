"""The newest foreign clients against the 'everything' server in Python, over HTTP and stdio.

The dialogue and its checks are those of the test of the server in Rust, which covers every SDK and mode.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support import interop

CHOSEN = [sdk for sdk in interop.SDKS if sdk.name in ("python-2", "fastmcp", "typescript-2", "go")]


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The server's program."""
    program: Path = tmp_path_factory.mktemp("everything") / "everything"
    server = interop.ROOT / "tests" / "conformance" / "everything.py"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{server}" "$@"\n')
    program.chmod(0o755)
    return str(program)


@pytest.fixture(scope="session")
def client(request: pytest.FixtureRequest) -> list[str]:
    """The command of an SDK's client program."""
    sdk: interop.Sdk = request.param
    return sdk.client()


@pytest.mark.network
@pytest.mark.parametrize(
    ("client", "era"),
    [pytest.param(sdk, era, id=f"{sdk.name}-{era}") for sdk in CHOSEN for era in sdk.eras],
    indirect=["client"],
)
@pytest.mark.parametrize("transport", ["http-auto", "stdio"])
def test_client_gets_all_that_a_server_in_python_has(
    everything: str, client: list[str], era: str, transport: str, tmp_path: Path
) -> None:
    interop.holds(everything, client, era, transport, tmp_path)
