"""The queue of observed requests is bounded, whatever clients send."""

from __future__ import annotations

from mcpace import _core
from support.core_server import server, serving, sync

MOST_BYTES = 16 << 20


def test_what_nobody_takes_is_bounded_in_bytes() -> None:
    observations = _core.Observations(lambda *_: None)
    made = server(echo=sync(lambda: "heard"))
    assert made.observe(observations)
    long = "k=" + "x" * 8_000
    requests = 1_500
    with serving(made, stateless=True) as connect:
        wire = connect()
        for _ in range(requests):
            answer = wire.ask("tools/list", {"_meta": {"baggage": long}}, baggage=long)
            assert "result" in answer
        told, lost = observations.take_now()
        # The oldest events are kept, and each has the same size.
        assert len(told) + lost == requests
        assert 0 < len(told) * 2 * len(long) < MOST_BYTES
        assert lost > 0
        # There is room again.
        wire.ask("tools/list", {"_meta": {"traceparent": "t" * 65, "tracestate": "s" * 513, "baggage": long}})
        ((facts, *_),), lost = observations.take_now()
        assert lost == 0
        assert facts[5] == (None, None, long)
