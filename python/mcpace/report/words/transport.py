"""Words for connections and the data on them."""

from __future__ import annotations

from typing import Any

from mcpace.report.model.contexts import (
    AddressFallback,
    BufferedStream,
    ClusteredStreamLifetime,
    ConnectionLimit,
    ConnectionPerRequest,
    DelayedAck,
    DelayedAckInLoad,
    DistantServer,
    PacketLoss,
    RedirectPerRequest,
    SlowReader,
    TransportProbing,
)
from mcpace.report.model.run import Finding
from mcpace.report.words.context import Words, cost_words, seconds
from mcpace.report.words.quantities import clean, count, duration, share

REPLIES = {
    "json": " with JSON replies",
    "sse": " with event streams as replies",
    "mixed": " with JSON and event streams as replies",
}
"""Kinds of replies on the connections."""


def _connection_per_request(finding: Finding, context: ConnectionPerRequest) -> str:
    connections = context.connections
    requests = context.requests
    seen = "Almost every request opened a connection of its own"
    if connections and requests:
        replies = REPLIES.get(context.replies or "", "")
        seen = f"{count(connections, 'connection')} for {count(requests, 'request')}{replies}"
    closer = {"client": "the client", "server": "the server", "instrument": "the recorder"}.get(context.closed_by or "")
    left = context.left_early
    if left:
        return (
            f"{seen}: the client broke off {count(left, 'reply', 'replies')} before the end, after which a connection "
            f"can't be used again. Setting up new ones took {cost_words(finding)}."
        )
    why = f"{closer} closed those that could have been used again" if closer else "open ones stayed unused"
    return f"{seen}, though {why}: {cost_words(finding)} for setting them up again."


def _connection_per_request_advice(context: ConnectionPerRequest) -> str:
    if context.closed_by == "server":
        return "Leave keep-alive on at the server, and at every proxy before it."
    return (
        "Share one HTTP client over the session, and read each reply to its end so that its connection can be reused."
    )


def _delayed_ack(finding: Finding, context: DelayedAck) -> str:
    pauses, pause = context.pauses, seconds(context.pause_ns)
    replies = count(pauses, "reply", "replies") if pauses else "Replies"
    still = f" for {duration(pause)}" if pause else ""
    return (
        f"{replies} stood still{still} between their first part and the rest, on connections that had carried replies "
        "before: as long as a kernel delays an acknowledgement."
    )


def _delayed_ack_in_load(finding: Finding, context: DelayedAckInLoad) -> str:
    low, high = context.from_s, context.to_s
    took = f"{duration(low)} to {duration(high)}" if low and high else "a fixed time longer"
    seen = f"{share(context.share, 1)} of the calls" if context.share else "Calls"
    sentence = f"{seen} took {took}, on connections that had carried calls before"
    quick, mean = context.quick_mean_s, context.mean_s
    if quick is None or mean is None:
        return f"{sentence}: as long as a peer's kernel delays an acknowledgement."
    return (
        f"{sentence}. With acknowledgements sent at once (TCP_QUICKACK on the client's sockets, the server unchanged) "
        f"they are gone: a call takes {duration(quick)} on average instead of {duration(mean)}. The server sends a "
        "reply in two small writes, and the second waits for the first one's acknowledgement."
    )


def _redirect_per_request(finding: Finding, context: RedirectPerRequest) -> str:
    redirects, served = context.redirects, context.of_requests
    seen = "Requests were sent on to another path each time"
    if redirects and served:
        seen = f"{redirects:.0f} of {count(served, 'request')} were sent on to another path first"
    source, target = clean(context.from_ or "", 60), clean(context.to or "", 60)
    way = f" ({source} to {target})" if source and target else ""
    return f"{seen}{way}: {cost_words(finding)}."


def _redirect_per_request_advice(context: RedirectPerRequest) -> str:
    target = clean(context.to or "", 60)
    return f"Give the client the path that serves{f', {target}' if target else ''}, or have the server serve both."


def _address_fallback(finding: Finding, context: AddressFallback) -> str:
    source, target = clean(context.from_ or "", 60), clean(context.to or "", 60)
    first = f"The first address of the server's name{f', {source},' if source else ''} did not answer"
    longest = seconds(context.longest_ns)
    lost = f" Finding that out took up to {duration(longest)}." if longest else ""
    return f"{first}, and the next one{f', {target},' if target else ''} did.{lost}"


def _transport_probing(finding: Finding, context: TransportProbing) -> str:
    probes, status = context.probes, context.status
    often = f"{count(probes, 'connect')} began" if probes else "Each connect began"
    code = f" ({status:.0f})" if status else ""
    return (
        f"{often} with a POST that the server refuses{code}, and then a GET: the client tries out the transport anew."
    )


def _buffered_stream(finding: Finding, context: BufferedStream) -> str:
    events, longest = context.events, seconds(context.longest_ns)
    what = count(events, "progress notification") if events else "Progress"
    after = f" after {duration(longest)} of silence" if longest else ""
    packed = f" The stream is compressed ({clean(context.encoding, 20)})." if context.encoding else ""
    return f"{what} came all at once{after}, together with the result.{packed}"


def _buffered_stream_advice(context: BufferedStream) -> str:
    if context.encoding:
        return "Leave text/event-stream out of compression, or flush the compressor after each event."
    return "Turn buffering off for this path at every proxy (X-Accel-Buffering: no), and flush after each event."


def _clustered_stream_lifetime(finding: Finding, context: ClusteredStreamLifetime) -> str:
    streams, age, lost = context.streams, seconds(context.age_ns), context.without_result
    what = count(streams, "stream") if streams else "Streams"
    at = f" {duration(age)}" if age else " a fixed time"
    since = {"last-event": " after the last event on them", "beginning": " after their beginning"}.get(
        context.counted_from or "", ""
    )
    who = {"client": ", closed by the client", "server": ", closed by the server or something before it"}.get(
        context.closed_by or "", ""
    )
    without = f" {count(lost, 'call')} lost the result." if lost else ""
    return f"{what} ended{at}{since}{who}.{without}"


def _clustered_stream_lifetime_advice(context: ClusteredStreamLifetime) -> str:
    if context.closed_by == "client":
        return (
            "Raise the client's time-out for reply bodies (in Node: undici's bodyTimeout), or turn it off for streams."
        )
    return "Send something on silent streams (a comment each 15 s), or raise the idle time-out before the server."


def _connection_limit(finding: Finding, context: ConnectionLimit) -> str:
    limit, held, longest = context.limit, context.held, seconds(context.longest_ns)
    replies = f"{count(limit, 'reply was', 'replies were')} open" if limit else "Replies were open"
    who = count(held, "operation") if held else "Operations"
    wait = f", for {duration(longest)} at the longest" if longest else ""
    never = context.never_left
    lost = f"; {count(never, 'request')} never left" if never else ""
    return f"{replies}, and never more: {who} could send nothing until one ended{wait}{lost}."


def _packet_loss(finding: Finding, context: PacketLoss) -> str:
    stalls, pause, resent = context.stalls, seconds(context.pause_ns), context.retransmitted
    way = {"to-server": " to the server", "to-client": " to the client"}.get(context.way or "", "")
    exchanges = count(stalls, "exchange") if stalls else "Exchanges"
    still = f" for {duration(pause)}" if pause else ""
    segments = count(resent, "segment") if resent else "segments"
    return (
        f"{exchanges} stood still{still} while the recorder's kernel sent {segments}{way} again: segments were lost on "
        "their way."
    )


def _packet_loss_advice(context: PacketLoss) -> str:
    path = {"to-server": "between the recorder and the server", "to-client": "between the client and the recorder"}
    way = path.get(context.way or "", "between the two")
    return f"Look for the loss on the path {way}: a wireless link, a full queue, a tunnel with a smaller packet size."


def _slow_reader(finding: Finding, context: SlowReader) -> str:
    replies, wait, longest = context.replies, seconds(context.wait_ns), seconds(context.longest_ns)
    who = count(replies, "reply", "replies") if replies else "Replies"
    time = f" for {duration(wait)}" if wait else ""
    most = f", {duration(longest)} at the longest" if longest and replies and replies > 1 else ""
    return f"{who} waited{time}{most} because the client did not read: its receive window was full."


def _distant_server(finding: Finding, context: DistantServer) -> str:
    trip, trips, call = seconds(context.round_trip_ns), context.round_trips, seconds(context.call_ns)
    far = f"A round trip to the server takes {duration(trip)} at the least" if trip else "The server is far away"
    often = f", and a call makes {count(trips, 'round trip')}" if trips else ""
    total = f"; the median call takes {duration(call)}" if call else ""
    opened = context.connections
    connects = f" {count(opened, 'connection was', 'connections were')} opened for calls." if opened else ""
    return f"{far}{often}{total}.{connects}"


def _distant_server_advice(context: DistantServer) -> str:
    opened, calls = context.connections, context.of_calls
    if opened and calls and opened * 2 > calls:
        return "Keep connections open between calls, which saves a round trip each, or run the server nearer to them."
    return "Run the server nearer to its clients, or make fewer calls that each do more."


_DELAYED_ACK = (
    "Replies wait for a delayed acknowledgement",
    "the end of each reply waits for a delayed TCP acknowledgement",
)
_DELAYED_ACK_ADVICE = "Set TCP_NODELAY on the sockets that the server accepts, or have it send each reply in one write."

WORDS: tuple[Words[Any], ...] = (
    Words(
        RedirectPerRequest,
        "Each request is redirected",
        "each request is redirected to another path first",
        _redirect_per_request,
        _redirect_per_request_advice,
    ),
    Words(
        AddressFallback,
        "The name's first address doesn't answer",
        "each connection is tried at an address that doesn't answer first",
        _address_fallback,
        "Let the server listen on every address of its name (:: and 0.0.0.0), or name it by the one that answers.",
    ),
    Words(
        TransportProbing,
        "Each connect tries out the transport",
        "each connect tries out the transport anew",
        _transport_probing,
        "Name the server's transport in the client's settings, so that it need not be tried out.",
    ),
    Words(
        BufferedStream,
        "Progress arrives all at once",
        "something holds the stream's events back",
        _buffered_stream,
        _buffered_stream_advice,
    ),
    Words(
        ClusteredStreamLifetime,
        "Streams end at a fixed age",
        "streams are cut at a fixed age",
        _clustered_stream_lifetime,
        _clustered_stream_lifetime_advice,
    ),
    Words(
        ConnectionLimit,
        "Requests wait for a free connection",
        "requests wait until one of the client's connections is free",
        _connection_limit,
        "Allow the client more connections to one server, or end unused streams.",
    ),
    Words(
        ConnectionPerRequest,
        "A new connection for each request",
        "each request opens a connection of its own",
        _connection_per_request,
        _connection_per_request_advice,
    ),
    Words(
        PacketLoss,
        "Lost segments hold calls up",
        "segments are lost on their way and sent again",
        _packet_loss,
        _packet_loss_advice,
    ),
    Words(
        SlowReader,
        "The client reads slowly",
        "the client does not read what the server sends",
        _slow_reader,
        "Read each reply as it arrives and work on it in another task, and leave the receive buffer to the kernel.",
    ),
    Words(
        DistantServer,
        "The server is far away",
        "the way to the server and back takes a notable part of each call",
        _distant_server,
        _distant_server_advice,
    ),
    Words(DelayedAck, *_DELAYED_ACK, _delayed_ack, _DELAYED_ACK_ADVICE),
    Words(DelayedAckInLoad, *_DELAYED_ACK, _delayed_ack_in_load, _DELAYED_ACK_ADVICE),
)
