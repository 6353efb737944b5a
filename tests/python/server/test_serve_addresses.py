"""Detection of this machine's own addresses."""

from __future__ import annotations

import pytest

from mcpace.server.running.addresses import Address, is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)
    assert Address(host, 8000).is_loopback


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "::1234", "::1:2", "::ffff:192.0.2.1", "192.0.2.127", "", "127.example"]
)
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)
