"""Words for processor time, memory, and the start of processes."""

from __future__ import annotations

from typing import Any

from mcpace.report.model.contexts import (
    LargeListing,
    RebuiltPerRequest,
    SessionLeak,
    SlowStart,
    SuperlinearLine,
    TaskLeak,
)
from mcpace.report.model.run import Finding
from mcpace.report.words.context import Words, seconds
from mcpace.report.words.quantities import clean, count, duration, share, size


def _slow_start(finding: Finding, context: SlowStart) -> str:
    longest = seconds(context.longest_ns) or finding.cost_s
    program = clean(context.program or "The server's process", 60)
    typical = seconds(context.typical_answer_ns)
    against = f", against {duration(typical)} for its later answers" if typical else ""
    starts, of = context.starts, context.of_starts
    often = f" ({starts:,.0f} of {count(of, 'start')})" if starts and of and of > 1 else ""
    runner = " It is a package runner, which may fetch packages first." if context.package_runner else ""
    return f"{program} took {duration(longest)} until its first answer{against}{often}.{runner}"


def _slow_start_advice(context: SlowStart) -> str:
    if context.package_runner:
        return "Install the server beforehand and start it directly, and keep its process for more than one session."
    return "Import less at the server's start, and keep its process for more than one session."


def _memory_rise(context: SessionLeak | TaskLeak) -> str:
    before, after, each = context.bytes_before, context.bytes_after, context.bytes_each
    rose = f" from {size(before)} to {size(after)}" if before and after else ""
    least, most = context.least_bytes_each, context.most_bytes_each
    interval = f" (between {size(least)} and {size(most)})" if least and most and size(least) != size(most) else ""
    apiece = f", {size(each)} for each{interval}" if each else ""
    return f"{rose}{apiece}"


def _session_leak(finding: Finding, context: SessionLeak) -> str:
    begun, ended = context.begun, context.ended
    sessions = count(begun, "session") if begun else "sessions"
    left = f" were begun and {count(ended or 0, 'was', 'were')} ended" if begun else " were begun and not ended"
    return f"{sessions[:1].upper()}{sessions[1:]}{left}; the server's memory rose with them{_memory_rise(context)}."


def _session_leak_advice(context: SessionLeak) -> str:
    if context.begun and context.begun == context.ended:
        return "Use a release of the server's SDK that forgets a session after DELETE, or serve without sessions."
    return "Have the server end unused sessions, and clients end theirs with DELETE."


def _task_leak(finding: Finding, context: TaskLeak) -> str:
    requests = context.requests
    with_ = f"with {count(requests, 'request')}" if requests else "with each request"
    return f"The memory of the server rose {with_}{_memory_rise(context)}, and did not stop."


def _rebuilt_per_request(finding: Finding, context: RebuiltPerRequest) -> str:
    few, many = context.few_tools, context.many_tools
    low, high = seconds(context.each_with_few_ns), seconds(context.each_with_many_ns)
    who = "client's" if context.of == "client" else "server's"
    if few is None or many is None or low is None or high is None:
        return f"The {who} processor time for a request grows with the number of tools."
    return (
        f"A request takes {duration(low)} of the {who} processor with {count(few, 'tool')}, "
        f"and {duration(high)} with {many:,.0f}."
    )


def _rebuilt_per_request_advice(context: RebuiltPerRequest) -> str:
    if context.of == "client":
        return "Keep compiled validators over calls in the client: it builds them anew for each result."
    return "Build schemas and catalogues once, at the start (go-sdk: 1.3.0 or newer keeps them), not for each request."


def _large_listing(finding: Finding, context: LargeListing) -> str:
    bytes_, tokens, tools = context.bytes, context.tokens, context.tools
    of = f" of {count(tools, 'tool')}" if tools else ""
    each = f", {size(bytes_ / tools)} each" if bytes_ and tools else ""
    whole = f"{size(bytes_)}{each}" if bytes_ else "large"
    about = f", about {tokens:,.0f} tokens of a model's context" if tokens else ""
    listings, all_ = context.bytes_in_all, context.of_bytes
    part = f" Listings are {share(listings, all_)} of all that was transferred." if listings and all_ else ""
    return f"The listing{of} is {whole}{about}.{part}"


def _superlinear_line(finding: Finding, context: SuperlinearLine) -> str:
    power, largest = context.power, context.largest
    grows = f"with their size to the power of {power:.1f}" if power else "more than in proportion to their size"
    longest = seconds(context.longest_ns)
    took = f": {duration(longest)} for {size(largest)}" if longest and largest else ""
    return f"The time that the client takes for long lines grows {grows}{took}."


WORDS: tuple[Words[Any], ...] = (
    Words(
        SuperlinearLine,
        "Long lines take the client disproportionately long",
        "the client's time for a line grows faster than the line",
        _superlinear_line,
        "Use a release of the client's SDK that joins the pieces of a line only once, or send shorter answers.",
    ),
    Words(
        SlowStart,
        "The server's process is slow to start",
        "the server's process is slow to start",
        _slow_start,
        _slow_start_advice,
    ),
    Words(
        SessionLeak,
        "Sessions stay in the server's memory",
        "the server's memory rises with the number of its sessions",
        _session_leak,
        _session_leak_advice,
    ),
    Words(
        TaskLeak,
        "Each request stays in the server's memory",
        "the server's memory rises with each request",
        _task_leak,
        (
            "Use a release of the server's SDK that ends what it starts for a stateless request (python: newer than "
            "1.11, see python-sdk #756); if the growth stays, look for objects that each request leaves behind."
        ),
    ),
    Words(
        RebuiltPerRequest,
        "Each request costs more, the more tools there are",
        "each request costs more, the more tools there are",
        _rebuilt_per_request,
        _rebuilt_per_request_advice,
    ),
    Words(
        LargeListing,
        "The listing takes a good part of a model's context",
        "the listing of tools takes a good part of a model's context",
        _large_listing,
        "List fewer tools, shorten descriptions and schemas, or let clients load tools when they need them.",
    ),
)
