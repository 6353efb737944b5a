"""Foreign clients against the 'everything' server: each SDK at its newest, over each transport and mode it speaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import interop


@pytest.fixture(scope="session")
def everything() -> str:
    """The server's program."""
    return interop.everything()


@pytest.fixture(scope="session")
def client(request: pytest.FixtureRequest) -> list[str]:
    """The command of an SDK's client program."""
    sdk: interop.Sdk = request.param
    return sdk.client()


@pytest.mark.network
@pytest.mark.parametrize(
    ("client", "era"),
    [pytest.param(sdk, era, id=f"{sdk.name}-{era}") for sdk in interop.SDKS for era in sdk.eras],
    indirect=["client"],
)
@pytest.mark.parametrize("transport", interop.TRANSPORTS)
def test_client_gets_all_that_the_server_has(
    everything: str, client: list[str], era: str, transport: str, tmp_path: Path
) -> None:
    interop.holds(everything, client, era, transport, tmp_path)
