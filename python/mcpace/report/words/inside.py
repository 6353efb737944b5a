"""Words for the code of a tool and its dependencies."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from mcpace.report.model.contexts import (
    BlockingCallInEventLoop,
    ClientBuiltPerCall,
    RepeatedDependencyCall,
    SerialDependencies,
    SlowDependency,
)
from mcpace.report.model.run import Finding
from mcpace.report.words.context import Words
from mcpace.report.words.quantities import clean, count, duration, join_words, share

Timed = ClientBuiltPerCall | RepeatedDependencyCall | SerialDependencies | BlockingCallInEventLoop | SlowDependency


SEND_TOGETHER = {"python": "asyncio.gather", "node": "Promise.all", "java": "CompletableFuture.allOf, or virtual threads"}
JAVASCRIPT = {".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"}


def _place(context: ClientBuiltPerCall | BlockingCallInEventLoop) -> str:
    """``weather.py:14, in forecast``; ``the tool`` where the line is unknown."""
    if not context.file:
        return "the tool"
    function = f", in {clean(context.function, 60)}" if context.function else ""
    return f"{clean(PurePath(context.file).name, 60)}:{context.line or 0}{function}"


def _of_call(context: Timed) -> str:
    """``220 ms (47 %) of a call``."""
    cause, server = (context.cause_ns or 0) / 1e9, (context.server_ns or 0) / 1e9
    part = f" ({share(cause, server)})" if server else ""
    return f"{duration(cause)}{part} of a call"


def _saves(context: Timed) -> str:
    return f" That saves about {duration(context.gain_ns / 1e9)} a call." if context.gain_ns else ""


def _client_built(finding: Finding, context: ClientBuiltPerCall) -> str:
    client, built = clean(context.client or "a client", 80), context.built or 1
    often = "once" if built == 1 else f"about {built} times"
    slowest = context.slowest_function
    mostly = f", most of it in {clean(slowest, 80)}" if slowest else ""
    return (
        f"{clean(context.tool or 'The tool', 60)} spends {_of_call(context)} building {client}, "
        f"{often} in each call{mostly}: {_place(context)}."
    )


def _client_built_advice(context: ClientBuiltPerCall) -> str:
    client = clean(context.client or "the client", 80)
    return f"Create {client} once, when the server starts, and use it in all calls.{_saves(context)}"


def _repeated(finding: Finding, context: RepeatedDependencyCall) -> str:
    what = "statement" if context.kind == "database" else "request"
    asked = clean(context.pattern or "", 120)
    return (
        f"{clean(context.tool or 'The tool', 60)} sends the same {what} {context.requests or 0} times in each call to "
        f"{clean(context.dependency or 'a dependency', 80)}, which takes {_of_call(context)}: {asked}."
    )


def _repeated_advice(context: RepeatedDependencyCall) -> str:
    how = "one statement (WHERE … IN, or a join)" if context.kind == "database" else "one request, or all at once"
    return f"Ask for all of it in {how}.{_saves(context)}"


def _serial(finding: Finding, context: SerialDependencies) -> str:
    names = join_words([clean(name, 60) for name in context.dependencies or []])
    return (
        f"{clean(context.tool or 'The tool', 60)} sends {count(context.requests or 0, 'request')} to "
        f"{names or 'its dependencies'} one after another, which takes {_of_call(context)}; "
        f"the longest one takes {duration((context.longest_ns or 0) / 1e9)}."
    )


def _serial_advice(context: SerialDependencies) -> str:
    function = SEND_TOGETHER.get(context.language or "")
    how = f" ({function})" if function else ""
    return f"Send them together{how}, as far as none needs the answer of another.{_saves(context)}"


def _blocking(finding: Finding, context: BlockingCallInEventLoop) -> str:
    callee = f" in {clean(context.callee, 80)}" if context.callee else ""
    return (
        f"{clean(context.tool or 'The tool', 60)} blocks the event loop for {_of_call(context)}{callee}: "
        f"{_place(context)}. The server answers nothing else meanwhile."
    )


def _blocking_advice(context: BlockingCallInEventLoop) -> str:
    if PurePath(context.file or "").suffix in JAVASCRIPT:
        callee = clean(context.callee or "", 60)
        function = f" ({callee.removesuffix('Sync')} in place of {callee})" if callee.endswith("Sync") else ""
        how = f"Use the asynchronous function there{function}, which works outside the thread of the event loop."
    elif PurePath(context.file or "").suffix == ".java":
        how = "Use the library's asynchronous calls there, or run it on another thread (Schedulers.boundedElastic())."
    else:
        how = (
            "Use an asynchronous library there, or declare the tool with def instead of async def, so that it runs in "
            "a thread."
        )
    return f"{how} Other calls then no longer wait for it."


def _slow(finding: Finding, context: SlowDependency) -> str:
    return (
        f"{clean(context.dependency or 'A dependency', 80)} takes {_of_call(context)} of "
        f"{clean(context.tool or 'the tool', 60)} to answer {count(context.requests or 1, 'request')}: "
        f"{clean(context.pattern or '', 120)}."
    )


WORDS: tuple[Words[Any], ...] = (
    Words(
        ClientBuiltPerCall,
        "A client is built in each call",
        "a client of a library is built in each call",
        _client_built,
        _client_built_advice,
    ),
    Words(
        RepeatedDependencyCall,
        "The same is asked again and again in each call",
        "the tool asks the same thing again and again in each call",
        _repeated,
        _repeated_advice,
    ),
    Words(
        SerialDependencies,
        "Requests of a tool wait for one another",
        "the tool sends its requests one after another",
        _serial,
        _serial_advice,
    ),
    Words(
        BlockingCallInEventLoop,
        "The tool blocks the event loop",
        "the tool blocks the event loop",
        _blocking,
        _blocking_advice,
    ),
    Words(
        SlowDependency,
        "A dependency is slow to answer",
        "the tool waits for a slow dependency",
        _slow,
        "Look for the time at that dependency, cache its answers, or ask it for less.",
    ),
)
