"""Words for the code of a tool and its dependencies."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from mcpace.report.model.contexts import (
    BlockingCallInEventLoop,
    ClientBuiltPerCall,
    CostlyLibrary,
    DependencyConnectionPerCall,
    GcPauses,
    ImportInCall,
    LockWait,
    PoolWait,
    RepeatedDependencyCall,
    SerialDependencies,
    SerializationCost,
    SlowDependency,
    TimerWait,
    ValidationCost,
)
from mcpace.report.model.run import Finding
from mcpace.report.words.context import Words
from mcpace.report.words.quantities import clean, count, duration, figure, join_words, share, times
from mcpace.report.words.source_place import place_words

Placed = (
    ClientBuiltPerCall
    | BlockingCallInEventLoop
    | CostlyLibrary
    | ValidationCost
    | SerializationCost
    | ImportInCall
    | GcPauses
    | DependencyConnectionPerCall
    | PoolWait
    | LockWait
    | TimerWait
)
Timed = Placed | RepeatedDependencyCall | SerialDependencies | SlowDependency


SEND_TOGETHER = {
    "python": "asyncio.gather",
    "node": "Promise.all",
    "java": "CompletableFuture.allOf, or virtual threads",
}
RETRYING = {"async-retry", "backoff", "cockatiel", "p-retry", "retry", "retrying", "stamina", "tenacity", "urllib3"}
"""Libraries that try something again after a pause."""
JAVASCRIPT = {".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"}


def _place(context: Placed) -> str:
    """``weather.py:14, in forecast``; ``the tool`` where the line is unknown."""
    if not context.file:
        return "the tool"
    function = f", in {clean(context.function, 60)}" if context.function else ""
    return f"{place_words(context.file, context.line or 0)}{function}"


def _of_call(context: Timed) -> str:
    """``220 ms (47 %) of a call``."""
    cause, server = (context.cause_ns or 0) / 1e9, (context.server_ns or 0) / 1e9
    part = f" ({share(cause, server)})" if server else ""
    return f"{duration(cause)}{part} of a call"


def _saves(context: Timed, how: str = "about") -> str:
    return f" That saves {how} {duration(context.gain_ns / 1e9)} a call." if context.gain_ns else ""


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


def _processor_share(context: CostlyLibrary | ValidationCost | SerializationCost) -> str:
    """``, 80 % of its processor time``."""
    processor = (context.processor_ns or 0) / 1e9
    return f", {share((context.cause_ns or 0) / 1e9, processor)} of its processor time" if processor else ""


def _costly(finding: Finding, context: CostlyLibrary) -> str:
    return (
        f"{clean(context.tool or 'The tool', 60)} spends {_of_call(context)}{_processor_share(context)} in "
        f"{clean(context.library or 'a library', 60)}: {_place(context)}."
    )


def _costly_advice(context: CostlyLibrary) -> str:
    library, alternative = clean(context.library or "it", 60), clean(context.alternative or "another library", 60)
    if not context.factor:
        return f"Use {alternative} there.{_saves(context)}"
    use, versions = clean(context.measured_use or "one use", 120), clean(context.measured_versions or "", 120)
    return (
        f"Use {alternative} there: for {use}, {library} took {times(context.factor)} the processor time of "
        f"{alternative} ({versions}).{_saves(context)}"
    )


def _data_place(context: ValidationCost | SerializationCost) -> str:
    return _place(context) if context.file else "the server's framework has it done, with arguments or results"


def _validation(finding: Finding, context: ValidationCost) -> str:
    library = clean(context.library or "a library", 60)
    doing = f"building models and schemas of {library}" if _is_building(context) else f"checking values with {library}"
    return (
        f"{clean(context.tool or 'The tool', 60)} spends {_of_call(context)}{_processor_share(context)} {doing}: "
        f"{_data_place(context)}."
    )


def _is_building(context: ValidationCost) -> bool:
    return 2 * (context.built_ns or 0) >= (context.cause_ns or 0) > 0


def _validation_advice(context: ValidationCost) -> str:
    if _is_building(context):
        return (
            f"Build the models and validators once, when the server starts, and use them in all calls.{_saves(context)}"
        )
    if not context.file:
        return (
            f"Return less, or turn the check of results off where the tool makes them itself.{_saves(context, 'up to')}"
        )
    return (
        "Check values once, where they come in, and pass on the checked objects; values of one's own need no check."
        f"{_saves(context, 'up to')}"
    )


def _serialization(finding: Finding, context: SerializationCost) -> str:
    return (
        f"{clean(context.tool or 'The tool', 60)} spends {_of_call(context)}{_processor_share(context)} on turning "
        f"values into text or back with {clean(context.library or 'a library', 60)}: {_data_place(context)}."
    )


def _serialization_advice(context: SerializationCost) -> str:
    return f"Read and write only the part that is needed, and keep texts that stay alike.{_saves(context, 'up to')}"


def _import(finding: Finding, context: ImportInCall) -> str:
    module = clean(context.module or "modules", 60)
    tool = clean(context.tool or "the tool", 60)
    who = f"The first call of {tool} in each process" if context.in_first_call else f"Each call of {tool}"
    return f"{who} loads {module}, which takes {_of_call(context)}: {_place(context)}."


def _import_advice(context: ImportInCall) -> str:
    if context.in_first_call:
        return f"Import it at the top of the file, so that the server's start waits and no call.{_saves(context)}"
    return (
        f"Import it once, at the top of the file, and keep the module, or the fact that it is missing.{_saves(context)}"
    )


def _gc(finding: Finding, context: GcPauses) -> str:
    pauses = context.pauses or 0.0
    often = f"{figure(pauses)} times in each call" if pauses >= 1 else "in some calls"
    where = f" They interrupt {_place(context)}." if context.file else ""
    return (
        f"The collection of garbage stops {clean(context.tool or 'the tool', 60)} {often}, for {_of_call(context)}; "
        f"the longest pause lasts {duration((context.longest_ns or 0) / 1e9)}.{where}"
    )


def _gc_advice(context: GcPauses) -> str:
    return (
        "Make fewer objects, and let the collector run less often: in Python by gc.freeze() after the start and a "
        f"larger gc.set_threshold(); in Node and Java by a larger young generation.{_saves(context, 'up to')}"
    )


def _connections(finding: Finding, context: DependencyConnectionPerCall) -> str:
    handshake = " with a TLS handshake" if context.handshake else ""
    place = f" The tool connects in {_place(context)}." if context.file else ""
    trip = f"; the way there and back takes {duration(context.round_trip_ns / 1e9)}" if context.round_trip_ns else ""
    return (
        f"{clean(context.tool or 'The tool', 60)} opens {count(context.connections or 1, 'new connection')}{handshake} "
        f"to {clean(context.address or 'a dependency', 80)} in each call, though an earlier one could have been kept. "
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
        f"Calls of {clean(context.tool or 'the tool', 60)} wait {_of_call(context)} for a connection of the pool of "
        f"{pool}, while other threads hold all of them: {_place(context)}."
    )


def _lock(finding: Finding, context: LockWait) -> str:
    lock = "Python's interpreter lock" if context.interpreter else "a lock"
    holder = ""
    if context.holder_file:
        holder = f" Meanwhile another thread runs {place_words(context.holder_file, context.holder_line or 0)}."
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


def _timer(finding: Finding, context: TimerWait) -> str:
    timers = "a timer" if (context.timers or 1) == 1 else count(context.timers or 1, "timer")
    library = f" of {clean(context.library, 60)}" if context.library else ""
    return (
        f"{clean(context.tool or 'The tool', 60)} waits {_of_call(context)} for {timers}{library}: {_place(context)}. "
        "Nothing else of the call is under way meanwhile."
    )


def _timer_advice(context: TimerWait) -> str:
    library = clean(context.library or "", 60)
    if library in RETRYING:
        how = f"{library} waits before it tries again: find out why the try before fails, or let it wait for less."
    elif library:
        how = f"Let {library} wait for less, or use what it has in place of a fixed time."
    else:
        event = "events.once" if PurePath(context.file or "").suffix in JAVASCRIPT else "asyncio.Event"
        how = f"Wait for the event itself ({event}, a queue, a reply) in place of a fixed time, or look again sooner."
    return f"{how}{_saves(context, 'up to')}"


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
    Words(
        CostlyLibrary,
        "A library takes most of the processor time",
        "a library takes most of the tool's processor time, and a quicker one is known",
        _costly,
        _costly_advice,
    ),
    Words(
        ValidationCost,
        "Values are checked at length",
        "the tool spends much of its processor time on checks of values",
        _validation,
        _validation_advice,
    ),
    Words(
        SerializationCost,
        "Values become text at length",
        "the tool spends much of its processor time on turning values into text and back",
        _serialization,
        _serialization_advice,
    ),
    Words(
        ImportInCall,
        "Code is loaded while a call waits",
        "the tool loads code while a call waits",
        _import,
        _import_advice,
    ),
    Words(
        GcPauses,
        "The collection of garbage stops the tool",
        "the collection of garbage stops the tool",
        _gc,
        _gc_advice,
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
    Words(
        TimerWait,
        "The tool waits for a timer",
        "the tool waits for a timer",
        _timer,
        _timer_advice,
    ),
)
