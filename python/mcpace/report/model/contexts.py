"""Facts of each finding. Made by `make docs` from crates/explain/src/findings: change them there."""

from typing import ClassVar, Literal

from pydantic import Field

from mcpace.report.model.base import Number, Whole
from mcpace.report.model.context import Context

Closer = Literal["client", "server", "instrument"]
"""Side that ended a connection."""

CountedFrom = Literal["beginning", "last-event"]
"""The event that a time-out counts from."""

DependencyKind = Literal["http", "database", "other", "connection", "program", "pool-work", "timer"]
"""The kind of a dependency that a program waits for."""

Follows = Literal["token", "session", "everything", "processor-time"]
"""The part of a request that a constant cost depends on."""

GeneratorLimit = Literal["late-starts", "threads-busy"]
"""The sign by which a load generator was seen to be the limit."""

GiveUpLayer = Literal["call", "head", "body"]
"""The stage of a request at which a client gives it up."""

GiveUpSign = Literal["cancelled", "closed", "repeated", "call-failed"]
"""How a client gives a request up."""

HoldReason = Literal["authorization-lock", "stream-first"]
"""Why a client holds its requests."""

Language = Literal["python", "node", "java"]
"""The language of a program."""

Peer = Literal["client", "server"]
"""A party to the traffic, where its process is meant."""

Released = Literal["reply-end", "connection-close", "nothing-seen"]
"""The event that a client with a complete result waited for."""

ReleasedWith = Literal["slower-reply", "full-buffer"]
"""The event that releases replies that were ready."""

ReplyKind = Literal["json", "sse", "mixed"]
"""Kinds of reply bodies."""

Storm = Literal["steady", "in-step"]
"""How needless retries come."""

Trigger = Literal["time-out", "at-once"]
"""The event that causes a second call."""

Way = Literal["to-client", "to-server"]
"""A way that the recorder's segments take."""


class ImportInCall(Context):
    """Facts of ``import-in-call``. A tool loads code while a call waits."""

    code: ClassVar[str] = "import-in-call"
    cause_ns: Whole | None = None
    """Time of a call that the cause takes."""
    file: str | None = None
    """Path of the file."""
    function: str | None = None
    """The function that it belongs to."""
    gain_ns: Whole | None = None
    """Time of a call that the advised change would save."""
    in_first_call: bool | None = None
    """Whether only the first call of each process loads it."""
    line: Whole | None = None
    """Number of the line."""
    module: str | None = None
    """The library or the file that takes the most time to load; ``None`` where it is not found at all."""
    server_ns: Whole | None = None
    """Time that a call takes at the server."""
    tool: str | None = None
    """The tool."""


class ClientBuiltPerCall(Context):
    """Facts of ``client-built-per-call``. A tool builds a client of a library, a session or a connection in each
    call."""

    code: ClassVar[str] = "client-built-per-call"
    built: Whole | None = None
    """How often it is built in one call, nearly: the median."""
    cause_ns: Whole | None = None
    """Time of a call that the cause takes."""
    client: str | None = None
    """The class or the function that builds it, with its package: ``httpx.AsyncClient``."""
    file: str | None = None
    """Path of the file."""
    function: str | None = None
    """The function that it belongs to."""
    gain_ns: Whole | None = None
    """Time of a call that the advised change would save."""
    line: Whole | None = None
    """Number of the line."""
    server_ns: Whole | None = None
    """Time that a call takes at the server."""
    slowest_function: str | None = None
    """The function in which building it takes the most time: ``create_default_context``."""
    tool: str | None = None
    """The tool."""


class GcPauses(Context):
    """Facts of ``gc-pauses``. The runtime of the server's language stops a tool to collect garbage."""

    code: ClassVar[str] = "gc-pauses"
    cause_ns: Whole | None = None
    """Time of a call that the cause takes."""
    file: str | None = None
    """Path of the file."""
    function: str | None = None
    """The function that it belongs to."""
    gain_ns: Whole | None = None
    """Time of a call that the advised change would save."""
    line: Whole | None = None
    """Number of the line."""
    longest_ns: Whole | None = None
    """The longest pause."""
    pauses: Number | None = None
    """Pauses in one call: the mean."""
    server_ns: Whole | None = None
    """Time that a call takes at the server."""
    tool: str | None = None
    """The tool."""


class CostlyLibrary(Context):
    """Facts of ``costly-library``. A tool spends its processor time in a library for which a quicker one with the same
    use was measured."""

    code: ClassVar[str] = "costly-library"
    alternative: str | None = None
    """The quicker library with the same use."""
    callee: str | None = None
    """The function of the library that the line calls."""
    cause_ns: Whole | None = None
    """Time of a call that the cause takes."""
    factor: Number | None = None
    """Processor time of the library for the measured use, divided by that of the alternative."""
    file: str | None = None
    """Path of the file."""
    function: str | None = None
    """The function that it belongs to."""
    gain_ns: Whole | None = None
    """Time of a call that the advised change would save."""
    library: str | None = None
    """The library that takes the time."""
    line: Whole | None = None
    """Number of the line."""
    measured: str | None = None
    """The day of the measurement."""
    measured_use: str | None = None
    """The use of both libraries that was measured."""
    measured_versions: str | None = None
    """The releases that were measured, and the interpreter."""
    processor_ns: Whole | None = None
    """Processor time of one call."""
    server_ns: Whole | None = None
    """Time that a call takes at the server."""
    tool: str | None = None
    """The tool."""


class ValidationCost(Context):
    """Facts of ``validation-cost``. A tool spends its processor time on checks of values."""

    code: ClassVar[str] = "validation-cost"
    built_ns: Whole | None = None
    """Time of a call in which models or schemas are built, as opposed to used."""
    callee: str | None = None
    """The function that the line calls."""
    cause_ns: Whole | None = None
    """Time of a call that the cause takes."""
    file: str | None = None
    """Path of the file."""
    function: str | None = None
    """The function that it belongs to."""
    gain_ns: Whole | None = None
    """Time of a call that the advised change would save."""
    library: str | None = None
    """The library that checks."""
    line: Whole | None = None
    """Number of the line."""
    processor_ns: Whole | None = None
    """Processor time of one call."""
    server_ns: Whole | None = None
    """Time that a call takes at the server."""
    tool: str | None = None
    """The tool."""


class SerializationCost(Context):
    """Facts of ``serialization-cost``. A tool spends its processor time on turning values into text and back."""

    code: ClassVar[str] = "serialization-cost"
    callee: str | None = None
    """The function that the line calls."""
    cause_ns: Whole | None = None
    """Time of a call that the cause takes."""
    file: str | None = None
    """Path of the file."""
    function: str | None = None
    """The function that it belongs to."""
    gain_ns: Whole | None = None
    """Time of a call that the advised change would save."""
    library: str | None = None
    """The library that writes or reads."""
    line: Whole | None = None
    """Number of the line."""
    processor_ns: Whole | None = None
    """Processor time of one call."""
    server_ns: Whole | None = None
    """Time that a call takes at the server."""
    tool: str | None = None
    """The tool."""


class RepeatedDependencyCall(Context):
    """Facts of ``repeated-dependency-call``. A tool asks the same thing again and again within one call."""

    code: ClassVar[str] = "repeated-dependency-call"
    cause_ns: Whole | None = None
    """Time of a call that the cause takes."""
    dependency: str | None = None
    """The dependency that is asked."""
    gain_ns: Whole | None = None
    """Time of a call that the advised change would save."""
    kind: DependencyKind | None = None
    """The kind of the dependency."""
    pattern: str | None = None
    """The request or the statement, without the parts that differ."""
    requests: Whole | None = None
    """How often it is sent in one call: the median."""
    server_ns: Whole | None = None
    """Time that a call takes at the server."""
    tool: str | None = None
    """The tool."""


class SerialDependencies(Context):
    """Facts of ``serial-dependencies``. A tool sends its requests one after another. Whether one needs another's answer
    is not seen."""

    code: ClassVar[str] = "serial-dependencies"
    cause_ns: Whole | None = None
    """Time of a call that the cause takes."""
    dependencies: list[str] | None = None
    """The dependencies that are asked, in the order of the first request to each."""
    gain_ns: Whole | None = None
    """Time of a call that the advised change would save."""
    language: Language | None = None
    """The language of the tool; ``None`` where no stack tells."""
    longest_ns: Whole | None = None
    """The time of the longest request of a call: the mean."""
    requests: Whole | None = None
    """Requests in one call: the median."""
    server_ns: Whole | None = None
    """Time that a call takes at the server."""
    tool: str | None = None
    """The tool."""


class BlockingCallInEventLoop(Context):
    """Facts of ``blocking-call-in-event-loop``. A tool blocks the thread that runs the event loop."""

    code: ClassVar[str] = "blocking-call-in-event-loop"
    callee: str | None = None
    """The function of a library that the line calls; ``None`` where the line itself blocks."""
    cause_ns: Whole | None = None
    """Time of a call that the cause takes."""
    file: str | None = None
    """Path of the file."""
    function: str | None = None
    """The function that it belongs to."""
    gain_ns: Whole | None = None
    """Time of a call that the advised change would save."""
    line: Whole | None = None
    """Number of the line."""
    server_ns: Whole | None = None
    """Time that a call takes at the server."""
    tool: str | None = None
    """The tool."""


class SlowDependency(Context):
    """Facts of ``slow-dependency``. A tool waits for one dependency most of its time."""

    code: ClassVar[str] = "slow-dependency"
    cause_ns: Whole | None = None
    """Time of a call that the cause takes."""
    dependency: str | None = None
    """The dependency that is asked."""
    gain_ns: Whole | None = None
    """Time of a call that the advised change would save."""
    kind: DependencyKind | None = None
    """The kind of the dependency."""
    pattern: str | None = None
    """The request or the statement that takes the most time, without the parts that differ."""
    requests: Whole | None = None
    """Requests to it in one call: the median."""
    server_ns: Whole | None = None
    """Time that a call takes at the server."""
    tool: str | None = None
    """The tool."""


class DependencyConnectionPerCall(Context):
    """Facts of ``dependency-connection-per-call``. A tool opens a new connection to a dependency in each call."""

    code: ClassVar[str] = "dependency-connection-per-call"
    address: str | None = None
    """Address of the dependency: ``10.0.0.5:5432``."""
    cause_ns: Whole | None = None
    """Time of a call that the cause takes."""
    connections: Whole | None = None
    """New connections in one call: the median."""
    dependency_closes: bool | None = None
    """Whether the dependency closes the connections, so that the tool cannot keep them."""
    file: str | None = None
    """Path of the file."""
    function: str | None = None
    """The function that it belongs to."""
    gain_ns: Whole | None = None
    """Time of a call that the advised change would save."""
    handshake: bool | None = None
    """Whether a TLS handshake was seen."""
    line: Whole | None = None
    """Number of the line."""
    round_trip_ns: Whole | None = None
    """The way to the dependency and back, as the kernel measured it: the median; zero where it is unknown."""
    server_ns: Whole | None = None
    """Time that a call takes at the server."""
    tool: str | None = None
    """The tool."""


class PoolWait(Context):
    """Facts of ``pool-wait``. Calls of a tool wait for a connection of a pool that other calls hold."""

    code: ClassVar[str] = "pool-wait"
    cause_ns: Whole | None = None
    """Time of a call that the cause takes."""
    file: str | None = None
    """Path of the file."""
    function: str | None = None
    """The function that it belongs to."""
    gain_ns: Whole | None = None
    """Time of a call that the advised change would save."""
    line: Whole | None = None
    """Number of the line."""
    pool: str | None = None
    """The package of the pool."""
    server_ns: Whole | None = None
    """Time that a call takes at the server."""
    tool: str | None = None
    """The tool."""


class LockWait(Context):
    """Facts of ``lock-wait``. Calls of a tool wait for a lock, or for the interpreter, that other threads hold."""

    code: ClassVar[str] = "lock-wait"
    cause_ns: Whole | None = None
    """Time of a call that the cause takes."""
    file: str | None = None
    """Path of the file."""
    function: str | None = None
    """The function that it belongs to."""
    gain_ns: Whole | None = None
    """Time of a call that the advised change would save."""
    holder_file: str | None = None
    """File of the line that others wait for, where it was seen."""
    holder_line: Whole | None = None
    """Number of that line."""
    interpreter: bool | None = None
    """Whether the lock is that of the interpreter."""
    line: Whole | None = None
    """Number of the line."""
    server_ns: Whole | None = None
    """Time that a call takes at the server."""
    threads: Whole | None = None
    """Threads that take turns at one time, nearly."""
    tool: str | None = None
    """The tool."""


class TimerWait(Context):
    """Facts of ``timer-wait``. A tool waits for a timer that its own code, or a library that it calls, has set."""

    code: ClassVar[str] = "timer-wait"
    cause_ns: Whole | None = None
    """Time of a call that the cause takes."""
    file: str | None = None
    """Path of the file."""
    function: str | None = None
    """The function that it belongs to."""
    gain_ns: Whole | None = None
    """Time of a call that the advised change would save."""
    library: str | None = None
    """The library that sets the timers; ``None`` where the server's own code does."""
    line: Whole | None = None
    """Number of the line."""
    server_ns: Whole | None = None
    """Time that a call takes at the server."""
    timers: Whole | None = None
    """Timers in one call: the median."""
    tool: str | None = None
    """The tool."""


class DuplicateRequest(Context):
    """Facts of ``duplicate-request``. A request is sent again though the first sending succeeded; the server executes
    it twice."""

    code: ClassVar[str] = "duplicate-request"
    after_reply_end: Whole | None = None
    """Repeated requests that left only after the whole first reply: the client drained that reply and dropped it."""
    authenticated: bool | None = None
    """Whether the repeated requests carried an ``authorization`` header."""
    executions: Whole | None = None
    """Repeated requests that executed a tool (``tools/call``)."""
    methods: list[str] | None = None
    """JSON-RPC methods that were repeated, each once, sorted."""
    repeats: Whole | None = None
    """Repeated requests."""
    streams: Whole | None = None
    """Repeated GETs for the server's own stream; ``total.requests`` counts them too."""


class RetriedExecution(Context):
    """Facts of ``retried-execution``. A tool is called again with the same arguments while the first call may be
    running still."""

    code: ClassVar[str] = "retried-execution"
    both_answered: Whole | None = None
    """Repeated calls where both calls were answered: both ran."""
    repeats: Whole | None = None
    """Calls that were made again."""
    timeout_ns: Whole | None = None
    """How long the first was waited for, where it was given up."""
    tool: str | None = None
    """The tool, the first one where there are several."""
    trigger: Trigger | None = None
    """The event that caused the second call."""


class HiddenListing(Context):
    """Facts of ``hidden-listing``. A ``tools/list`` between a call's result and the call's return."""

    code: ClassVar[str] = "hidden-listing"
    calls: Whole | None = None
    """Calls with one."""
    listings: Whole | None = None
    """Listings (their pages included)."""
    of_calls: Whole | None = None
    """Calls of the same operation."""


class SessionPerCall(Context):
    """Facts of ``session-per-call``. Each call begins a session of its own."""

    code: ClassVar[str] = "session-per-call"
    processes: Whole | None = None
    """Server processes spawned for them."""
    sessions: Whole | None = None
    """Sessions begun for them."""
    tool_calls: Whole | None = None
    """Tool calls."""


class RepeatedListing(Context):
    """Facts of ``repeated-listing``. A listing that a client already has, fetched again and again."""

    code: ClassVar[str] = "repeated-listing"
    largest_bytes: Whole | None = None
    """The largest of them."""
    methods: list[str] | None = None
    """JSON-RPC methods, each once, sorted."""
    repeats: Whole | None = None
    """Listings that brought what was known."""
    tool_calls: Whole | None = None
    """Tool calls of the same sessions."""


class Amplification(Context):
    """Facts of ``amplification``. A gateway sends several requests on for one call."""

    code: ClassVar[str] = "amplification"
    calls: Whole | None = None
    """Calls that the gateway had alone."""
    methods: dict[str, Whole] | None = None
    """Requests by JSON-RPC method, or HTTP method where there is none."""
    requests: Whole | None = None
    """Requests that it sent for them."""
    sessions: Whole | None = None
    """Sessions that it began for them."""
    typical: Whole | None = None
    """Requests that the gateway sent for the typical call."""


class SerialFanOut(Context):
    """Facts of ``serial-fan-out``. A gateway asks the servers behind it one after another."""

    code: ClassVar[str] = "serial-fan-out"
    at_once_ns: Whole | None = None
    """The time that the request would have taken with the servers asked at the same time."""
    longest_ns: Whole | None = None
    """The longest that such a request took at the gateway."""
    methods: list[str] | None = None
    """JSON-RPC methods that the gateway asked the servers for, each once, sorted."""
    requests: Whole | None = None
    """Requests that the gateway answered so."""
    servers: Whole | None = None
    """Servers that it asked for one."""


class DiscoveryRepeated(Context):
    """Facts of ``discovery-repeated``. OAuth metadata fetched again though nothing had changed."""

    code: ClassVar[str] = "discovery-repeated"
    repeats: Whole | None = None
    """Needless fetches."""
    targets: list[str] | None = None
    """The documents' paths, each once, sorted."""


class RedirectPerRequest(Context):
    """Facts of ``redirect-per-request``. Requests are sent on to another path each time."""

    code: ClassVar[str] = "redirect-per-request"
    from_: str | None = Field(None, alias="from")
    """The path that was asked first."""
    of_requests: Whole | None = None
    """Requests that were served."""
    redirects: Whole | None = None
    """Requests that were sent on and asked again."""
    status: Whole | None = None
    """HTTP status of the first redirect."""
    to: str | None = None
    """The path that serves."""


class TransportProbing(Context):
    """Facts of ``transport-probing``. The client tries out which transport the server speaks, on every connect."""

    code: ClassVar[str] = "transport-probing"
    probes: Whole | None = None
    """Connects that began with a request that is refused."""
    status: Whole | None = None
    """HTTP status of the last refusal."""


class AuthDeadlock(Context):
    """Facts of ``auth-deadlock``. The token came, then nothing was sent any more."""

    code: ClassVar[str] = "auth-deadlock"
    calls: Whole | None = None
    """Calls that stood still."""
    longest_ns: Whole | None = None
    """The longest silence after the token."""
    of_calls: Whole | None = None
    """Calls of the same operation."""


class WaitsForGet(Context):
    """Facts of ``waits-for-get``. No request leaves the client until the head of the standalone GET's reply has
    arrived."""

    code: ClassVar[str] = "waits-for-get"
    gate: HoldReason | None = None
    """Which of the two known reasons fits."""
    longest_ns: Whole | None = None
    """The longest wait."""
    occurrences: Whole | None = None
    """Times that requests were held."""


class ConnectionLimit(Context):
    """Facts of ``connection-limit``. A request waits until one of the client's connections is free."""

    code: ClassVar[str] = "connection-limit"
    held: Whole | None = None
    """Operations whose request had to wait."""
    limit: Whole | None = None
    """Replies that are open at one time, and never more."""
    longest_ns: Whole | None = None
    """The longest wait."""
    never_left: Whole | None = None
    """Held operations whose request never left."""


class AddressFallback(Context):
    """Facts of ``address-fallback``. The first address of the server's name doesn't answer."""

    code: ClassVar[str] = "address-fallback"
    from_: str | None = Field(None, alias="from")
    """The address that failed."""
    longest_ns: Whole | None = None
    """The longest failed try."""
    to: str | None = None
    """The address that stood."""
    tries: Whole | None = None
    """Connections that were tried at the wrong address first."""


class StreamNotDrained(Context):
    """Facts of ``stream-not-drained``. The client drops replies before their end, so that their connections can't be
    used again."""

    code: ClassVar[str] = "stream-not-drained"
    connections: Whole | None = None
    """Connections that they used."""
    left_early: Whole | None = None
    """Replies that the client broke off."""
    needless: Whole | None = None
    """Connections that were opened because the one before was spoiled, or although another was free."""
    requests: Whole | None = None
    """Requests of the sessions concerned."""


class ConnectionPerRequest(Context):
    """Facts of ``connection-per-request``. A new connection for each request though an open one was free."""

    code: ClassVar[str] = "connection-per-request"
    closed_by: Closer | None = None
    """The side that closed the connections that could have been used again; ``None`` where they stayed open, unused."""
    connections: Whole | None = None
    """Connections that they used."""
    left_early: Whole | None = None
    """Replies that the client broke off, which spoils their connections; it may have had to."""
    needless: Whole | None = None
    """Connections that were opened although an earlier one of the session was free."""
    replies: ReplyKind | None = None
    """The kind of the reply bodies."""
    requests: Whole | None = None
    """Requests of the sessions concerned."""


class GetLoop(Context):
    """Facts of ``get-loop``. The standalone GET is opened again and again."""

    code: ClassVar[str] = "get-loop"
    life_ns: Whole | None = None
    """How long a stream lived, in the middle."""
    not_a_stream: bool | None = None
    """Whether the server's replies were no event streams at all."""
    period_ns: Whole | None = None
    """The time from one opening to the next, in the middle."""
    sessions: Whole | None = None
    """Sessions that did so."""
    streams: Whole | None = None
    """Times that the stream was opened."""


class ResumeLoop(Context):
    """Facts of ``resume-loop``. A client resumes a stream after the same event again and again, and the answer never
    comes."""

    code: ClassVar[str] = "resume-loop"
    attempts: Whole | None = None
    """Times that a stream was asked to go on after the same event."""
    calls: Whole | None = None
    """Calls that never had their answer by it."""
    period_ns: Whole | None = None
    """The time from one attempt to the next, in the middle."""


class RetryStorm(Context):
    """Facts of ``retry-storm``. Refused requests come again at a steady pace, or from many clients in step."""

    code: ClassVar[str] = "retry-storm"
    clients: Whole | None = None
    """Clients at once, or sessions that each did so."""
    pattern: Storm | None = None
    """How they come."""
    period_ns: Whole | None = None
    """The time from one to the next, in the middle."""
    requests: Whole | None = None
    """Requests that were refused or failed."""
    status: Whole | None = None
    """The HTTP status that they got; ``None`` where there was no reply."""


class SessionLeak(Context):
    """Facts of ``session-leak``. The server's memory grows with the number of sessions: it keeps sessions that were
    never ended, or that were ended."""

    code: ClassVar[str] = "session-leak"
    begun: Whole | None = None
    """Sessions that were begun."""
    bytes_after: Whole | None = None
    """The server's memory afterwards."""
    bytes_before: Whole | None = None
    """The server's memory at the beginning."""
    bytes_each: Whole | None = None
    """Bytes of memory for each that was left."""
    ended: Whole | None = None
    """Sessions that the client ended."""
    least_bytes_each: Whole | None = None
    """The least that the interval of the slope allows for each."""
    most_bytes_each: Whole | None = None
    """The most that the interval of the slope allows for each."""


class TaskLeak(Context):
    """Facts of ``task-leak``. The server's memory grows with the number of requests, not with the number of
    sessions."""

    code: ClassVar[str] = "task-leak"
    bytes_after: Whole | None = None
    """The server's memory afterwards."""
    bytes_before: Whole | None = None
    """The server's memory at the beginning."""
    bytes_each: Whole | None = None
    """Bytes of memory for each."""
    least_bytes_each: Whole | None = None
    """The least that the interval of the slope allows for each."""
    most_bytes_each: Whole | None = None
    """The most that the interval of the slope allows for each."""
    requests: Whole | None = None
    """Requests that memory rose with."""
    threads: Whole | None = None
    """Threads that came in the meantime."""


class RebuiltPerRequest(Context):
    """Facts of ``rebuilt-per-request``. The processor time of each request grows with the number of tools."""

    code: ClassVar[str] = "rebuilt-per-request"
    each_with_few_ns: Whole | None = None
    """Processor time of a request with few tools."""
    each_with_many_ns: Whole | None = None
    """Processor time of a request with many tools."""
    few_tools: Whole | None = None
    """Tools, where there were few."""
    many_tools: Whole | None = None
    """Tools where there were many."""
    of: Peer | None = None
    """The process whose processor time was measured."""
    requests: Whole | None = None
    """Requests with many."""


class LargeListing(Context):
    """Facts of ``large-listing``. A listing of tools that takes a good part of a model's context."""

    code: ClassVar[str] = "large-listing"
    bytes: Whole | None = None
    """Bytes of one whole listing."""
    bytes_in_all: Whole | None = None
    """Bytes of all listings of the recording."""
    of_bytes: Whole | None = None
    """Bytes of all bodies of the recording."""
    pages: Whole | None = None
    """Replies that it came in."""
    tokens: Whole | None = None
    """Tokens of it, estimated."""
    tools: Whole | None = None
    """Tools in it, where that was counted."""


class SuperlinearLine(Context):
    """Facts of ``superlinear-line``. A client's time for a line grows faster than the length of the line."""

    code: ClassVar[str] = "superlinear-line"
    largest: Whole | None = None
    """Bytes of the longest."""
    lines: Whole | None = None
    """Answers that were looked at."""
    longest_ns: Whole | None = None
    """How long the client took for it."""
    power: Number | None = None
    """Time grows with this power of the size, to a tenth; 1 is in proportion."""


class SlowStart(Context):
    """Facts of ``slow-start``. A server process takes long until it first answers."""

    code: ClassVar[str] = "slow-start"
    longest_ns: Whole | None = None
    """The longest time from spawn or ``initialize``, whichever was later, to the answer."""
    of_starts: Whole | None = None
    """All starts that were answered."""
    package_runner: bool | None = None
    """Whether that is a package runner, which may fetch from the network before the server starts."""
    program: str | None = None
    """The program's name."""
    starts: Whole | None = None
    """Starts that were slow."""
    typical_answer_ns: Whole | None = None
    """The median time of later answers of the same processes, where there were any."""


class DelayedAck(Context):
    """Facts of ``delayed-ack``. A reply's second small write waits for the acknowledgement of the first."""

    code: ClassVar[str] = "delayed-ack"
    of_replies: Whole | None = None
    """Replies on connections that had carried one before."""
    pause_ns: Whole | None = None
    """The median pause."""
    pauses: Whole | None = None
    """Replies with a pause of the kernel's size."""


class PacketLoss(Context):
    """Facts of ``packet-loss``. Segments that were lost on their way hold calls up until the kernel sends them
    again."""

    code: ClassVar[str] = "packet-loss"
    of_exchanges: Whole | None = None
    """Exchanges of the connections whose statistics are known."""
    pause_ns: Whole | None = None
    """The median pause."""
    retransmitted: Whole | None = None
    """Segments that were sent again meanwhile."""
    stalls: Whole | None = None
    """Exchanges that stood still because of it."""
    way: Way | None = None
    """The way on which segments were lost."""


class SlowReader(Context):
    """Facts of ``slow-reader``. The client does not read what the server sends."""

    code: ClassVar[str] = "slow-reader"
    largest: Whole | None = None
    """Bytes of the largest of those that waited."""
    longest_ns: Whole | None = None
    """The longest wait."""
    of_replies: Whole | None = None
    """Replies of the connections whose statistics are known."""
    replies: Whole | None = None
    """Replies that waited for the client to read."""
    wait_ns: Whole | None = None
    """The median wait."""


class BufferedStream(Context):
    """Facts of ``buffered-stream``. Progress comes all at once, with the result."""

    code: ClassVar[str] = "buffered-stream"
    encoding: str | None = None
    """The content encoding of the stream, if there is one."""
    events: Whole | None = None
    """Progress notifications in them."""
    longest_ns: Whole | None = None
    """The longest silence before."""
    replies: Whole | None = None
    """Replies whose progress came at once."""


class ClientTimeOut(Context):
    """Facts of ``client-time-out``. The client gives its requests up after the same time, before their answers come."""

    code: ClassVar[str] = "client-time-out"
    answered_later: Whole | None = None
    """Requests whose answer came after the client had given them up."""
    calls: Whole | None = None
    """Requests that the client gave up after this time."""
    counted_from: CountedFrom | None = None
    """The event that the time-out counts from."""
    layer: GiveUpLayer | None = None
    """The stage of the request at which the client gave up most of them."""
    longest_answer_ns: Whole | None = None
    """The longest time from a request to such an answer."""
    of_calls: Whole | None = None
    """Requests for the same."""
    sign: GiveUpSign | None = None
    """How the client gave up most of them."""
    time_out_ns: Whole | None = None
    """The time-out: the median of the times after which the client gave up."""
    tool: str | None = None
    """The tool, prompt or resource, if all of them asked for one."""


class ProgressIgnored(Context):
    """Facts of ``progress-ignored``. The client's time-out ends requests for which the server sends progress."""

    code: ClassVar[str] = "progress-ignored"
    calls: Whole | None = None
    """Requests with progress that the client gave up."""
    notifications: Whole | None = None
    """Progress notifications of these requests."""
    silence_ns: Whole | None = None
    """The longest time from the last progress to the end of a request's wait."""
    time_out_ns: Whole | None = None
    """The time after which the client gave up, from the request."""
    tool: str | None = None
    """The tool, prompt or resource, if all of them asked for one."""
    without_progress: Whole | None = None
    """Requests without progress that the client gave up after the same time."""


class ClusteredStreamLifetime(Context):
    """Facts of ``clustered-stream-lifetime``. Streams end at one fixed age."""

    code: ClassVar[str] = "clustered-stream-lifetime"
    age_ns: Whole | None = None
    """The age."""
    closed_by: Closer | None = None
    """The side that closes the streams."""
    counted_from: CountedFrom | None = None
    """The event that the age counts from."""
    streams: Whole | None = None
    """Streams that ended at that age."""
    without_result: Whole | None = None
    """Streams that were replies and ended without their result."""


class ThreadPoolSaturation(Context):
    """Facts of ``thread-pool-saturation``. Requests of every kind wait until a thread or worker of the server is
    free."""

    code: ClassVar[str] = "thread-pool-saturation"
    at_a_time: Whole | None = None
    """Requests that the server had in work at a time."""
    held: Whole | None = None
    """Requests that were accepted and not begun with meanwhile."""
    longest_ns: Whole | None = None
    """The longest that one waited."""


class CompletionWaves(Context):
    """Facts of ``completion-waves``. Calls end in waves: a cap on workers or threads."""

    code: ClassVar[str] = "completion-waves"
    at_a_time: Whole | None = None
    """Calls that the server ran at a time."""
    held: Whole | None = None
    """Calls that had to wait for a wave to end."""
    longest_ns: Whole | None = None
    """The longest that one waited."""


class SerialSession(Context):
    """Facts of ``serial-session``. Requests of one session run one after another."""

    code: ClassVar[str] = "serial-session"
    held: Whole | None = None
    """Requests that were held."""
    longest_ns: Whole | None = None
    """The longest that one was held."""


class BlockedEventLoop(Context):
    """Facts of ``blocked-event-loop``. Nothing else is answered while a tool runs."""

    code: ClassVar[str] = "blocked-event-loop"
    across_sessions: bool | None = None
    """Whether some of them were of other sessions than the tool that held them."""
    held: Whole | None = None
    """Requests that were held."""
    longest_ns: Whole | None = None
    """The longest that one was held."""
    without_tool: Whole | None = None
    """Held requests that needed no tool: pings, lists, notifications."""


class HeadOfLine(Context):
    """Facts of ``head-of-line``. Replies that were ready arrive only together with a slower reply."""

    code: ClassVar[str] = "head-of-line"
    held: Whole | None = None
    """Replies that came late."""
    longest_ns: Whole | None = None
    """The longest that one was held."""
    released_with: ReleasedWith | None = None
    """The event that released the replies."""


class ConstantCostPerRequest(Context):
    """Facts of ``constant-cost-per-request``. Every request takes the same extra time, whatever it asks."""

    code: ClassVar[str] = "constant-cost-per-request"
    floor_ns: Whole | None = None
    """The least that the server took for any."""
    follows: Follows | None = None
    """The part of a request that the cost depends on."""
    kinds: Whole | None = None
    """Kinds of them."""
    requests: Whole | None = None
    """Requests and notifications that paid it."""
    without_ns: Whole | None = None
    """The time that the server took for a request without that part."""


class DistantServer(Context):
    """Facts of ``distant-server``. The way to the server and back takes a notable part of each call."""

    code: ClassVar[str] = "distant-server"
    call_ns: Whole | None = None
    """The median call."""
    connections: Whole | None = None
    """Connections that were opened for calls."""
    of_calls: Whole | None = None
    """Calls that were looked at."""
    round_trip_ns: Whole | None = None
    """The shortest round-trip time to the server."""
    round_trips: Whole | None = None
    """Round trips of a typical call."""


class RecorderLimited(Context):
    """Facts of ``recorder-limited``. The recorder was too busy to take its timestamps in time."""

    code: ClassVar[str] = "recorder-limited"
    late_ns: Whole | None = None
    """Total lateness."""
    of_ns: Whole | None = None
    """The time that was measured."""
    times: Whole | None = None
    """Times that it was late while something was under way."""


class NoisyRun(Context):
    """Facts of ``noisy-run``. The instrument was kept from running: the machine had other things to do."""

    code: ClassVar[str] = "noisy-run"
    late_ns: Whole | None = None
    """Total lateness."""
    of_ns: Whole | None = None
    """The time that was measured."""
    times: Whole | None = None
    """Times that the instrument was kept from running while something was under way."""


class LateDelivery(Context):
    """Facts of ``late-delivery``. The result was complete at the client long before the call returned."""

    code: ClassVar[str] = "late-delivery"
    calls: Whole | None = None
    """Calls with it."""
    longest_ns: Whole | None = None
    """The longest time between the result and the client's next act that nothing else explains."""
    of_calls: Whole | None = None
    """Calls of the same operation."""
    released_by: Released | None = None
    """The event that the client seems to have waited for."""


class DelayedAckInLoad(Context):
    """Facts of ``delayed-ack`` of a load. Calls of a load wait for the acknowledgement of a reply's first part."""

    code: ClassVar[str] = "delayed-ack"
    alone_p50_s: Number | None = None
    """``p50_s`` over one connection."""
    alone_quick_p50_s: Number | None = None
    """``p50_s`` over one connection with acknowledgements sent at once."""
    alone_share: Number | None = None
    """``share`` over one connection."""
    cpu_share: Number | None = None
    """Share of the server's processors that was busy, where it was measured."""
    from_s: Number | None = None
    """Lower end of the window."""
    mean_s: Number | None = None
    """Mean time of a call."""
    p50_s: Number | None = None
    """Median time of a call."""
    quick_mean_s: Number | None = None
    """``mean_s`` with acknowledgements sent at once."""
    quick_p50_s: Number | None = None
    """``p50_s`` with acknowledgements sent at once."""
    quick_share: Number | None = None
    """``share`` with acknowledgements sent at once, where the experiment was made."""
    share: Number | None = None
    """Share of the calls in the window, beyond the share that the times beside the window explain."""
    to_s: Number | None = None
    """Upper end of the window."""


class GeneratorLimited(Context):
    """Facts of ``generator-limited`` of a load. The load generator, not the target, was the limit."""

    code: ClassVar[str] = "generator-limited"
    busy: Number | None = None
    """Share of the measured time in which the busiest thread of the generator was busy."""
    late_p99_s: Number | None = None
    """99 of 100 calls began no later than this for the generator's own reasons."""
    reason: GeneratorLimit | None = None
    """The sign by which it was seen."""
    threads: Whole | None = None
    """Threads of the generator."""


class VerboseTool(Context):
    """Facts of ``verbose-tool``. One tool takes a good part of a model's context."""

    code: ClassVar[str] = "verbose-tool"
    description_tokens: Whole | None = None
    """Tokens of its description."""
    input_schema_tokens: Whole | None = None
    """Tokens of its input schema."""
    listing_tokens: Whole | None = None
    """Tokens of all tools of the server."""
    tokens: Whole | None = None
    """Tokens of its name, description and input schema."""
    tool: str | None = None
    """Name of the tool that takes most tokens."""
    verbose_tools: Whole | None = None
    """Tools that take as many tokens as a verbose one."""


class HugeResult(Context):
    """Facts of ``huge-result``. A tool's result takes a good part of a model's context."""

    code: ClassVar[str] = "huge-result"
    at_least: bool | None = None
    """Whether the recording has only a part of a result, so that the largest result has at least so many tokens."""
    tokens: Whole | None = None
    """Tokens of its largest result."""
    tool: str | None = None
    """Name of the tool."""


class DuplicateSchema(Context):
    """Facts of ``duplicate-schema``. Tools of one listing repeat the same part of a schema."""

    code: ClassVar[str] = "duplicate-schema"
    listing_tokens: Whole | None = None
    """Tokens of all tools of the server."""
    member: str | None = None
    """Name of a member of a schema whose value occurs several times."""
    repeated_tokens: Whole | None = None
    """Tokens of all repeated parts of the listing, each without its first occurrence."""
    tokens: Whole | None = None
    """Tokens of one occurrence."""
    tools: Whole | None = None
    """Number of the tools that have it."""


CONTEXTS: dict[str, tuple[type[Context], ...]] = {
    "import-in-call": (ImportInCall,),
    "client-built-per-call": (ClientBuiltPerCall,),
    "gc-pauses": (GcPauses,),
    "costly-library": (CostlyLibrary,),
    "validation-cost": (ValidationCost,),
    "serialization-cost": (SerializationCost,),
    "repeated-dependency-call": (RepeatedDependencyCall,),
    "serial-dependencies": (SerialDependencies,),
    "blocking-call-in-event-loop": (BlockingCallInEventLoop,),
    "slow-dependency": (SlowDependency,),
    "dependency-connection-per-call": (DependencyConnectionPerCall,),
    "pool-wait": (PoolWait,),
    "lock-wait": (LockWait,),
    "timer-wait": (TimerWait,),
    "duplicate-request": (DuplicateRequest,),
    "retried-execution": (RetriedExecution,),
    "hidden-listing": (HiddenListing,),
    "session-per-call": (SessionPerCall,),
    "repeated-listing": (RepeatedListing,),
    "amplification": (Amplification,),
    "serial-fan-out": (SerialFanOut,),
    "discovery-repeated": (DiscoveryRepeated,),
    "redirect-per-request": (RedirectPerRequest,),
    "transport-probing": (TransportProbing,),
    "auth-deadlock": (AuthDeadlock,),
    "waits-for-get": (WaitsForGet,),
    "connection-limit": (ConnectionLimit,),
    "address-fallback": (AddressFallback,),
    "stream-not-drained": (StreamNotDrained,),
    "connection-per-request": (ConnectionPerRequest,),
    "get-loop": (GetLoop,),
    "resume-loop": (ResumeLoop,),
    "retry-storm": (RetryStorm,),
    "session-leak": (SessionLeak,),
    "task-leak": (TaskLeak,),
    "rebuilt-per-request": (RebuiltPerRequest,),
    "large-listing": (LargeListing,),
    "superlinear-line": (SuperlinearLine,),
    "slow-start": (SlowStart,),
    "delayed-ack": (
        DelayedAck,
        DelayedAckInLoad,
    ),
    "packet-loss": (PacketLoss,),
    "slow-reader": (SlowReader,),
    "buffered-stream": (BufferedStream,),
    "client-time-out": (ClientTimeOut,),
    "progress-ignored": (ProgressIgnored,),
    "clustered-stream-lifetime": (ClusteredStreamLifetime,),
    "thread-pool-saturation": (ThreadPoolSaturation,),
    "completion-waves": (CompletionWaves,),
    "serial-session": (SerialSession,),
    "blocked-event-loop": (BlockedEventLoop,),
    "head-of-line": (HeadOfLine,),
    "constant-cost-per-request": (ConstantCostPerRequest,),
    "distant-server": (DistantServer,),
    "recorder-limited": (RecorderLimited,),
    "noisy-run": (NoisyRun,),
    "late-delivery": (LateDelivery,),
    "generator-limited": (GeneratorLimited,),
    "verbose-tool": (VerboseTool,),
    "huge-result": (HugeResult,),
    "duplicate-schema": (DuplicateSchema,),
}
"""For each code the contexts that it may have."""
