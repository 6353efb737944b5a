"""Words for the code of a tool and its dependencies."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from mcpace.report.model.contexts import (
    BlockingCallInEventLoop,
    ClientBuiltPerCall,
    DependencyConnectionPerCall,
    LockWait,
    PoolWait,
    RepeatedDependencyCall,
    SerialDependencies,
    SlowDependency,
)
from mcpace.report.model.run import Finding
from mcpace.report.words.context import Words
from mcpace.report.words.quantities import clean, count, duration, join_words, share

Placed = ClientBuiltPerCall | BlockingCallInEventLoop | DependencyConnectionPerCall | PoolWait | LockWait
Timed = Placed | RepeatedDependencyCall | SerialDependencies | SlowDependency


def _place(context: Placed) -> str:
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
    return f"Send them together (asyncio.gather), as far as none needs the answer of another.{_saves(context)}"


def _blocking(finding: Finding, context: BlockingCallInEventLoop) -> str:
    callee = f" in {clean(context.callee, 80)}" if context.callee else ""
    return (
        f"{clean(context.tool or 'The tool', 60)} blocks the event loop for {_of_call(context)}{callee}: "
        f"{_place(context)}. The server answers nothing else meanwhile."
    )


def _slow(finding: Finding, context: SlowDependency) -> str:
    return (
        f"{clean(context.dependency or 'A dependency', 80)} takes {_of_call(context)} of "
        f"{clean(context.tool or 'the tool', 60)} to answer {count(context.requests or 1, 'request')}: "
        f"{clean(context.pattern or '', 120)}."
    )


def _connections(finding: Finding, context: DependencyConnectionPerCall) -> str:
    handshake = " with a TLS handshake" if context.handshake else ""
    place = f" The tool connects in {_place(context)}." if context.file else ""
    trip = f"; the way there and back takes {duration(context.round_trip_ns / 1e9)}" if context.round_trip_ns else ""
    return (
        f"{clean(context.tool or 'The tool', 60)} opens {count(context.connections or 1, 'new connection')}{handshake} to "
        f"{clean(context.address or 'a dependency', 80)} in each call, though an earlier connection could have been kept. "
        f"Connecting takes {_of_call(context)}{trip}.{place}"
    )


def _connections_advice(context: DependencyConnectionPerCall) -> str:
    address = clean(context.address or "The dependency", 80)
    if context.dependency_closes:
        return (
            f"{address} closes each connection: let it keep connections (keep-alive), and use one client for all calls."
            f"{_saves(context)}"
        )
    return f"Keep the connection, with one client or one pool for all calls.{_saves(context)}"


def _pool(finding: Finding, context: PoolWait) -> str:
    pool = clean(context.pool or "a library", 60)
    return (
        f"Calls of {clean(context.tool or 'the tool', 60)} wait {_of_call(context)} for a connection of the pool of {pool}, "
        f"while other threads hold all of them: {_place(context)}."
    )


def _lock(finding: Finding, context: LockWait) -> str:
    lock = "Python's interpreter lock" if context.interpreter else "a lock"
    holder = ""
    if context.holder_file:
        holder = f" Meanwhile another thread runs {clean(PurePath(context.holder_file).name, 60)}:{context.holder_line or 0}."
    return (
        f"Calls of {clean(context.tool or 'the tool', 60)} wait {_of_call(context)} for {lock}, in turns of "
        f"{count(context.threads or 2, 'thread')}: {_place(context)}.{holder}"
    )


def _lock_advice(context: LockWait) -> str:
    if context.interpreter:
        how = "Run the work in processes instead of threads (ProcessPoolExecutor, or more server processes)"
    else:
        how = "Hold the lock for less work, or use a lock for each thing that it protects"
    return f"{how}.{_saves(context)}"


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
        (
            "Use an asynchronous library there, or declare the tool with def instead of async def, so that it runs in "
            "a thread. Other calls then no longer wait for it."
        ),
    ),
    Words(
        SlowDependency,
        "A dependency is slow to answer",
        "the tool waits for a slow dependency",
        _slow,
        "Look for the time at that dependency, cache its answers, or ask it for less.",
    ),
    Words(
        DependencyConnectionPerCall,
        "A new connection to a dependency in each call",
        "the tool opens a new connection to a dependency in each call",
        _connections,
        _connections_advice,
    ),
    Words(
        PoolWait,
        "Calls wait for a connection of a pool",
        "calls wait for a connection of a pool",
        _pool,
        lambda context: f"Allow the pool more connections, or hold each for a shorter time.{_saves(context)}",
    ),
    Words(
        LockWait,
        "Calls wait for a lock",
        "calls wait for a lock that other threads hold",
        _lock,
        _lock_advice,
    ),
)
