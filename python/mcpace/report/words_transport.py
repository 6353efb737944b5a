"""Words for connections and what travels on them."""

from __future__ import annotations

from mcpace.report.quantities import count, duration, share
from mcpace.report.run import Finding
from mcpace.report.words_reading import Context, Words, number


def _connection_per_request(finding: Finding) -> str:
    connections = number(finding.context, "connections")
    requests = number(finding.context, "requests")
    seen = "Almost every request opened a connection of its own"
    if connections and requests:
        seen = f"{count(connections, 'connection')} for {count(requests, 'request')}"
    closer = {"client": "the client", "server": "the server", "instrument": "the recorder"}.get(
        str(finding.context.get("closed_by"))
    )
    left = number(finding.context, "left_early")
    if left:
        return (
            f"{seen}: the client broke off {count(left, 'reply', 'replies')} before the end, after which a connection "
            f"can't be used again. Setting up new ones took {duration(finding.cost_s)} a call."
        )
    why = f"{closer} closed those that could have been used again" if closer else "open ones stayed unused"
    return f"{seen}, though {why}: {duration(finding.cost_s)} a call for setting them up again."


def _connection_per_request_advice(context: Context) -> str:
    if context.get("closed_by") == "server":
        return "Leave keep-alive on at the server, and at every proxy before it."
    return (
        "Share one HTTP client over the session, and read each reply to its end so that its connection can be reused."
    )


def _delayed_ack(finding: Finding) -> str:
    context = finding.context
    low, high = number(context, "from_s") or 0.035, number(context, "to_s") or 0.06
    share_ = number(context, "share")
    seen = f"{share(share_, 1)} of the calls" if share_ else "Calls"
    sentence = f"{seen} took {duration(low)} to {duration(high)}, on connections that had carried calls before"
    quick, mean = number(context, "quick_mean_s"), number(context, "mean_s")
    if quick is None or mean is None:
        return f"{sentence}: as long as a peer's kernel delays an acknowledgement."
    return (
        f"{sentence}. With acknowledgements sent at once (TCP_QUICKACK on the client's sockets, the server unchanged) "
        f"they are gone: {duration(quick)} a call in the mean instead of {duration(mean)}. The server sends a reply in "
        "two small writes, and the second waits for the first one's acknowledgement."
    )


def _delayed_ack_advice(_: Context) -> str:
    return "Set TCP_NODELAY on the sockets that the server accepts, or have it send each reply in one write."


WORDS: dict[str, Words] = {
    "connection-per-request": Words(
        "A new connection for each request",
        "each request opens a connection of its own",
        _connection_per_request,
        _connection_per_request_advice,
    ),
    "delayed-ack": Words(
        "Replies wait for a delayed acknowledgement",
        "the end of each reply waits for a delayed TCP acknowledgement",
        _delayed_ack,
        _delayed_ack_advice,
    ),
}
