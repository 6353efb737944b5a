"""Words for processor time, memory, and the start of processes."""

from __future__ import annotations

from typing import Any

from mcpace.report.model.contexts import (
    DuplicateSchema,
    HugeResult,
    LargeListing,
    RebuiltPerRequest,
    SessionLeak,
    SlowStart,
    SuperlinearLine,
    TaskLeak,
    VerboseTool,
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


def _verbose_tool(finding: Finding, context: VerboseTool) -> str:
    tool = clean(context.tool or "One tool", 60)
    of = f" of the {context.listing_tokens:,} of the server's tools" if context.listing_tokens else ""
    parts = [
        f"{value:,} are the {name}"
        for value, name in ((context.description_tokens, "description"), (context.input_schema_tokens, "input schema"))
        if value
    ]
    more = (context.verbose_tools or 1) - 1
    others = f" {count(more, 'other tool')} of this server {'is' if more == 1 else 'are'} as verbose." if more else ""
    detail = f": {' and '.join(parts)}" if parts else ""
    return f"{tool} takes {context.tokens or 0:,} tokens{of}{detail}.{others}"


def _huge_result(finding: Finding, context: HugeResult) -> str:
    tool = clean(context.tool or "a tool", 60)
    bound = "at least " if context.at_least else ""
    return f"A result of {tool} has {bound}{context.tokens or 0:,} tokens, which stay in the model's context."


def _duplicate_schema(finding: Finding, context: DuplicateSchema) -> str:
    member = clean(context.member or "a member", 60)
    of = f" of the {context.listing_tokens:,} tokens of its tools" if context.listing_tokens else ""
    worst = f" The part {member} of {context.tokens or 0:,} tokens is in {count(context.tools or 2, 'tool')}."
    return f"Input schemas of this server repeat {context.repeated_tokens or 0:,} tokens{of}.{worst}"


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
    Words(
        VerboseTool,
        "A tool's description takes a good part of a model's context",
        "a tool takes many tokens of each context",
        _verbose_tool,
        "Shorten the description and the schema, and move what is rarely needed to a resource or another tool.",
    ),
    Words(
        HugeResult,
        "A tool's result takes a good part of a model's context",
        "a tool's result takes many tokens of the context",
        _huge_result,
        "Return pages or a summary, and let the tool's arguments select what is returned.",
    ),
    Words(
        DuplicateSchema,
        "Tools repeat the same part of a schema",
        "tools repeat the same part of a schema",
        _duplicate_schema,
        "Merge tools that take the same argument, or describe the argument once and refer to it.",
    ),
)
