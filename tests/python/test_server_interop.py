"""Foreign clients against the 'everything' server of the Python face: the newest ones, over HTTP and stdio.

The same dialogue as with the server in Rust, held by the same test; that one tries every SDK and mode.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import test_interop
from test_interop import ROOT, SDKS, client

__all__ = ["client", "everything"]

CHOSEN = [sdk for sdk in SDKS if sdk.name in ("python-2", "fastmcp", "typescript-2", "go")]


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The server's program."""
    program: Path = tmp_path_factory.mktemp("everything") / "everything"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT / "tests/conformance/everything.py"}" "$@"\n')
    program.chmod(0o755)
    return str(program)


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
    test_interop.test_client_gets_all_that_the_server_has(everything, client, era, transport, tmp_path)
