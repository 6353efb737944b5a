"""The compiled part: the lab's instruments. See crates/py for the other side.

Everything that waits does so without the interpreter's lock, is bounded in time unless it says otherwise, and ends on
Ctrl-C. Times ending in ``_ns`` are stamps of the clock of ``time.perf_counter_ns``, which
all processes of the machine share (``CLOCK_MONOTONIC`` on Linux).
"""

import asyncio
import contextvars
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from typing import Any, Literal, TypedDict, final, type_check_only

from typing_extensions import disjoint_base

PROFILES: list[str]
"""Names of the scripted targets."""
REVISIONS: list[str]
"""Protocol revisions, oldest first."""
DEBUG: bool
"""Whether this is a debug build, whose figures say nothing."""
VERSION: str
"""Version of the crates."""

def check_faults(faults: list[str]) -> None:
    """Raises :class:`UsageProblem` for faults that no target would take."""

if sys.platform == "win32":
    @final
    class JobObject:
        """A job object of Windows, whose processes are killed together. The end of this process kills them, too."""

        def __init__(self) -> None: ...
        def add(self, handle: int) -> None:
            """Puts a process into the job, by a handle of it. Raises :class:`OSError`."""

        def kill(self) -> None:
            """Kills the processes of the job."""

class Problem(Exception):
    """Base of what can go wrong in the instruments."""

class UsageProblem(Problem):
    """The caller's fault: the options make no sense."""

class EnvironmentProblem(Problem):
    """The environment's fault: a port, a file, a server that can't be reached."""

class ClientProblem(Problem):
    """An operation of :class:`Client` failed; the server's or the way's fault."""

class RegistrationProblem(UsageProblem):
    """Something that can't be registered with a server; the message says what, and what is wrong."""

class AskProblem(Problem):
    """A question to a server's client that has no answer."""

    kind: str
    """``undeclared``, ``unreachable``, ``too-many``, ``timed-out``, ``refused``, ``bad-answer`` or ``unwritable``."""
    code: int | None
    """The client's, where it refused."""
    message: str

class InputRequired(BaseException):
    """Ends a handler's round: it runs again when the client has answered. Not to be caught."""

class CallProblem(Problem):
    """A request of :class:`Caller` failed: ``args`` is its stable code, a sentence, and ``None`` or the JSON-RPC error
    as ``(code, message, data)``, the data being JSON text."""

@final
class Pending:
    """A request under way: awaited once, or waited for once. Given up, it is cancelled at the server."""

    def __await__(self) -> Generator[Any, Any, Any]: ...
    def wait(self, limit_s: float | None = None) -> Any:
        """Waits on this thread; Ctrl-C gives the request up, and so does the limit, with :class:`CallProblem`."""
    def send(self, _value: Any) -> Any: ...
    def throw(self, error: Any, value: Any = None, _traceback: Any = None) -> Any:
        """Gives the request up: the task that awaits it was cancelled."""
    def close(self) -> None: ...

@final
class Caller:
    """The runtime's client. Every request gives a :class:`Pending`, of the result's JSON text as bytes where not said
    otherwise. ``extras`` has ``time_s``, ``progress`` (called with progress, total, message on the thread that awaits),
    ``meta`` (a JSON object's bytes), ``cache`` (``use``, ``refresh``, ``bypass``), or is ``None``."""

    @staticmethod
    def connect(
        target: Any,
        settings: bytes,
        asks: Callable[[Question], Any],
        *,
        hears: Callable[[str, str | None], Any] | None = None,
        opens: Callable[[str], Any] | None = None,
        in_loop: bool = True,
        environment: list[tuple[str, str]] | None = None,
        folder: str | None = None,
        principal: Any = None,
    ) -> Pending:
        """Connects to a URL, a command or a :class:`Server` of this process: a :class:`Pending` of a caller. With
        ``in_loop``, callbacks are called on the running loop's thread. ``principal``, a verifier's token, is on whose
        behalf a client of a :class:`Server` speaks."""
    def server(self) -> tuple[str, str, bytes]:
        """Revision, transport, and the result of ``initialize`` or ``server/discover``."""
    def call_tool(self, name: str, arguments: str | None = None, extras: dict[str, Any] | None = None) -> Pending: ...
    def resume_tool(
        self,
        name: str,
        arguments: str | None = None,
        responses: bytes | None = None,
        state: str | None = None,
        extras: dict[str, Any] | None = None,
    ) -> Pending: ...
    def list(self, kind: str, cursor: str | None = None, extras: dict[str, Any] | None = None) -> Pending:
        """A page of ``tools``, ``resources``, ``resource_templates`` or ``prompts``."""
    def read_resource(self, uri: str, extras: dict[str, Any] | None = None) -> Pending: ...
    def get_prompt(self, name: str, arguments: str | None = None, extras: dict[str, Any] | None = None) -> Pending: ...
    def request(self, method: str, params: str | None = None, extras: dict[str, Any] | None = None) -> Pending: ...
    def notify(self, method: str, params: str) -> Pending:
        """A :class:`Pending` of nothing."""
    def listen(self, filter: bytes) -> Pending:
        """A :class:`Pending` of a :class:`Listening`."""
    def close(self) -> Pending:
        """A :class:`Pending` of nothing."""

@final
class Listening:
    """A subscription."""

    id: int
    agreed: str
    """The filter that the server agreed to, as JSON."""
    def next(self) -> Pending:
        """A :class:`Pending` of ``tools``, ``prompts``, ``resources``, ``resource URI``; of nothing at the end."""
    def close(self) -> Pending: ...

@final
class Question:
    """A question of the server's, to be answered or refused once, from any thread."""

    method: str
    id: str
    """JSON."""
    params: bytes | None
    def answer(self, result: str) -> None: ...
    def refuse(self, code: int, message: str, data: str | None = None) -> None: ...

@final
class Load:
    """A load under way: it runs on threads of its own from the moment that it is made. ``plan`` is JSON
    (:mod:`mcpace.lab.load.plan`); :class:`ValueError` says what is wrong with it."""

    def __new__(cls, plan: str) -> Load: ...
    def wait(self, seconds: float) -> bool:
        """Waits for the end, so long at most; whether it is there."""
    def progress(self) -> str:
        """The seconds that were finished since this was asked last, as JSON."""
    def deltas(self) -> str:
        """The counts of each second that has ended since this was asked last, as JSON. Empty where the plan has
        no share."""
    def stop(self) -> None:
        """Ends it early; what was measured is kept."""
    def result(self) -> str:
        """The outcome as JSON, once it is over."""

@final
class Target:
    """A scripted MCP server on loopback, on threads of its own."""

    url: str
    """Its endpoint."""
    certificate_pem: str | None
    """Its self-signed certificate, with ``tls``."""
    def __new__(
        cls,
        profile: str | RecordedServer,
        *,
        port: int = 0,
        hold_s: float = 10.0,
        faults: list[str] = ...,
        tls: bool = False,
        response: Literal["json", "sse"] | str | None = None,
        token: str | None = None,
        server_timing: bool = False,
    ) -> Target: ...
    def counters(self) -> dict[str, Any]:
        """Counts of the messages that reached it, by kind."""
    def wait(self) -> None:
        """Waits, without limit, until a signal comes."""
    def stop(self) -> None:
        """Ends it. Does nothing the second time."""

@final
class RecordedServer:
    """The answers of a recording, for a :class:`Target` or for a client over stdio."""

    def __new__(cls, path: str, *, lenient: bool = False, time_scale: float = 1.0) -> RecordedServer: ...
    def summary(self) -> dict[str, Any]:
        """Counts: ``answers`` by method, requests ``cut``, ``unanswered`` and ``refused``, answers ``redacted`` and
        ``asked``, and whether the recording is ``partial``."""
    def serve_stdio(self) -> dict[str, Any]:
        """Answers one client on stdin and stdout until it leaves. Returns the counters of a :class:`Target`."""

@final
class Shop:
    """The product API of the shop workload on loopback, on a thread of its own."""

    url: str
    """Base of its URLs."""
    def __new__(cls, *, port: int = 0, products: int = ...) -> Shop: ...
    def requests(self) -> int | None:
        """How many requests it has answered; ``None`` once it was stopped."""
    def stop(self) -> None:
        """Ends it. Does nothing the second time."""

@final
class Null:
    """The server that does nothing: the floor of comparisons between servers."""

    url: str
    """Its endpoint."""
    workers: int
    """Threads that serve."""
    def __new__(cls, *, host: str = "127.0.0.1", port: int = 0, workers: int | None = None) -> Null: ...
    def stop(self) -> None:
        """Ends it. Does nothing the second time."""

@final
class Recorder:
    """The proxy between any client and an HTTP server."""

    url: str
    """Where the client should be pointed."""
    failed: bool
    """Whether writing the file failed."""
    unreachable: str | None
    """Why the server could not be reached when that was last tried; ``None`` where it could."""
    exchanges: int
    """Exchanges seen so far."""
    def __new__(
        cls,
        upstream: str,
        *,
        file: str | None = None,
        keep: bool = True,
        port: int = 0,
        body_limit: int = 65536,
        extra_root: str | None = None,
        quickack: bool = False,
        headers: list[tuple[str, str]] = ...,
        watch: int | None = None,
        traceparent: bool = False,
        ring: tuple[str, int] | None = None,
        duration_bounds: Sequence[float] | None = None,
    ) -> Recorder:
        """``headers`` are added to each request to ``upstream``; they replace a client's headers of the same names and
        are not recorded. ``watch``: process id of the server, whose processor time is read at each exchange. ``ring``:
        folder and limit in bytes of a flight recorder, which is used instead of ``file`` and never fails.
        ``duration_bounds``: upper bounds in seconds of the histograms of :meth:`metrics`, without the last, which is
        infinite; the traffic is counted where they are given."""
    def metrics(self) -> dict[str, Any] | None:
        """Counts of the traffic up to the events that were written last, if it is counted: a ``TrafficSnapshot`` of
        crates/net."""
    def recording(self) -> Recording:
        """The recording so far, if it is kept."""
    def wait(self) -> None:
        """Waits, without limit, until a signal comes."""
    def stop(self) -> Recording:
        """Ends it, completes the file, and returns what was seen."""

@final
class Recording:
    """An instrument's observations, and their meaning. Facts are dicts and lists (see crates/explain)."""

    partial: bool
    """Whether its end is missing."""
    lost: int
    """Events that could not be kept."""
    @staticmethod
    def load(path: str) -> Recording: ...
    @staticmethod
    def merge(paths: list[str]) -> Recording:
        """Several stdio recordings, one a server process, as one."""
    @staticmethod
    def beside(paths: list[str]) -> Recording:
        """Several recordings of one machine as one, each with its connections, exchanges and operations to itself."""
    def add_samples(self, of: str, pid: int, samples: list[tuple[int, int, int, int]]) -> None:
        """Adds what a process used (``of`` is ``client`` or ``server``): clock, processor time, resident bytes, threads
        of each sample, times in nanoseconds."""
    def add_recording(self, other: Recording) -> None:
        """Adds the events of another recording of this machine, with numbers of their own."""
    def add_stacks(
        self,
        pid: int,
        stacks: list[list[tuple[str, str, int]]],
        samples: list[tuple[int, int, int, bool]],
    ) -> None:
        """Adds samples of the stacks of a process's threads.

        Each stack is a list of frames (function, file, line), the innermost first. ``samples`` are (clock in
        nanoseconds, thread, index of the stack, whether the thread ran).
        """
    def add_pauses(self, pid: int, pauses: list[tuple[int, int]]) -> None:
        """Adds pauses of a process's runtime for garbage collection: beginning and end of each, in nanoseconds."""
    def add_timers(
        self, pid: int, stacks: list[list[tuple[str, str, int]]], timers: list[tuple[int, int, int]]
    ) -> None:
        """Adds timers that a process's code waited for: when each was set and when it went off, in nanoseconds, and the
        index of the stack that set it. Each stack is a list of frames (function, file, line), the innermost first."""
    def add_pool_work(self, pid: int, stretches: list[tuple[int, int, str]]) -> None:
        """Adds work that the runtime of a process's language did on threads of its own: beginning and end in
        nanoseconds, and name (``files``) of each stretch of time."""
    def add_missing_source(self, source: str, reason: str) -> None:
        """Adds that a source of evidence (``spans``, ``stacks``, ``pauses`` or ``sockets``) gave nothing."""
    def add_call(
        self,
        operation: str,
        tool: str | None,
        start_ns: int,
        end_ns: int,
        outcome: str = "ok",
        message: str | None = None,
    ) -> int:
        """Adds an operation of the client's program by its own stamps; returns its id."""
    def save(self, path: str) -> None: ...
    def export(self, format: str, path: str) -> None:
        """Writes it as ``har``, ``trace`` (Chrome's trace events) or ``otlp`` (JSON lines)."""
    def ledgers(self) -> list[dict[str, Any]]: ...
    def explained(self, *, behind: Recording | None = None) -> Explained:
        """Where the time of its calls went, and why. Includes a gateway's, where ``behind`` was recorded between it
        and its
        servers."""
    def inside_sums(self, from_ns: int, to_ns: int) -> dict[str, Any]:
        """Sums over what the server's programs did from one moment to another: ``dependencies``, ``packages``,
        ``lines``."""
    def findings(self) -> list[dict[str, Any]]:
        """The causes that show."""
    def waterfall(self, call: int) -> dict[str, Any]: ...
    def events(self) -> list[dict[str, Any]]: ...
    def __len__(self) -> int: ...

@final
class StackSampler:
    """Samples the stacks of Python processes, from outside, until it is stopped: of ``root`` and its descendants; of
    this process, the descendants only."""

    def __new__(cls, root: int, *, period_s: float) -> StackSampler: ...
    def pause(self) -> None:
        """Takes no samples until ``resume``. Harmless once it is stopped."""
    def resume(self) -> None:
        """Goes on sampling. Harmless once it is stopped."""
    def stop(self) -> Recording:
        """Ends it; returns the samples. Raises UsageProblem the second time."""

@final
class SocketWatcher:
    """Watches the connections of ``root`` and its descendants, of this process the descendants only, until it is
    stopped."""

    def __new__(cls, root: int, *, period_s: float, ignored: list[str] = ...) -> SocketWatcher:
        """Connections to the addresses ``ignored`` (``127.0.0.1:4318``) are left out."""
    def stop(self) -> Recording:
        """Ends it; returns the connections. Raises UsageProblem the second time."""

@final
class ProcessWatcher:
    """Watches when descendants of ``root`` compute, until it is stopped."""

    def __new__(cls, root: int, *, period_s: float) -> ProcessWatcher: ...
    def stop(self) -> Recording:
        """Ends it; returns when they computed. Raises UsageProblem the second time."""

@final
class SpanReceiver:
    """Receives spans over OTLP/HTTP on a free port of loopback, until it is stopped."""

    endpoint: str
    """Base URL for ``OTEL_EXPORTER_OTLP_ENDPOINT``."""
    def __new__(cls) -> SpanReceiver: ...
    def stop(self) -> Recording:
        """Ends it; returns the spans. Raises UsageProblem the second time."""

@final
class Client:
    """Our instrumented client; it stamps each operation itself. Operations raise ClientProblem where they fail."""

    def __new__(
        cls,
        endpoint: str | list[str],
        *,
        environment: list[tuple[str, str]] = ...,
        revision: str | None = None,
        auth: str = "none",
        token: str | None = None,
        consent: str = "browser",
        limit_s: float = 60.0,
        server_timing: bool = False,
        standalone_get: bool = False,
        extra_root: str | None = None,
        headers: list[tuple[str, str]] = ...,
        traceparent: bool = False,
    ) -> Client: ...
    def connect(self) -> dict[str, Any]:
        """``revision``, ``transport``, ``server``, ``version``."""
    def list_tools(self) -> list[dict[str, Any]]:
        """All tools, as the server describes them."""
    def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The whole result; a tool's own failure is in it (``isError``)."""
    def token(self) -> str | None:
        """The access token that requests carry now, renewed where it has expired; ``None`` where there is none."""
    def disconnect(self) -> None:
        """Ends the session. Does nothing where there is none."""
    def recording(self) -> Recording:
        """The recording so far."""

@final
class Explained:
    """Where the time of a recording's calls went, and why. A call is named by its id; unknown ids count nowhere."""

    findings: list[dict[str, Any]]
    """The causes, worst first; ``calls`` is how many pay for one. See crates/explain for the other members."""
    waterfalls: list[dict[str, Any]]
    """The picture of each operation's slowest warm call."""
    methods: list[dict[str, Any]]
    """The client's requests by method, in the order in which methods first occur."""
    starts: list[float]
    """Seconds from each server process's start to its first answer."""
    tool_times: list[dict[str, Any]]
    """Where the time inside each tool went, where the server's programs were looked into."""
    missing_sources: list[tuple[str, str]]
    """Sources of evidence about the inside of the server that gave nothing (``spans``, ``stacks``), with the reason."""
    spans: dict[str, Any]
    """How spans were joined to calls: ``spans``, ``requests``, ``traced``, ``remote``, ``duplicates``, ``misplaced``,
    ``left_out``, and ``clocks``, each with ``service``, ``shift_ns``, ``error_ns``, ``is_contradictory``."""
    span_counts: tuple[int, int, bool] | None
    """Counts of the file of spans: spans without an end, spans that end before they begin, and whether it is
    cut off."""
    exits: list[dict[str, Any]]
    """How each server process ended: ``code``, ``signal``, ``answered`` and ``unanswered`` requests; ``only_call_ns``
    is the time of its tool call, where it was started for one call."""
    serial_calls: dict[str, int]
    """Tool calls that a foreign client made one after another in one turn: ``calls``, ``time_ns``, ``at_once_ns``."""
    events: int
    lost: int
    """Events that could not be kept."""
    partial: bool
    """Whether its end is missing."""
    def trials(
        self, operation: str
    ) -> Iterator[tuple[int, float, Literal["ok", "tool-error", "failed", "open"], str | None]]:
        """The calls of one operation by their starts: id, seconds, how it ended (``open``: it never returned, and its
        seconds are up to the recording's end), the program's words where it failed."""
    def tool(self, call: int) -> str | None:
        """The tool of a call."""
    def sum(self, calls: list[int]) -> dict[str, Any]:
        """The ledgers of ``calls``, added up: ``calls``, ``parts`` in nanoseconds, ``layers`` of ``parts.server``, and
        the number of calls whose layers the server ``reported``. ``rejected`` is the number of impossible reports,
        ``rejected_ns`` the sum of their times."""
    def window(self, call: int) -> tuple[int, int] | None:
        """Its start and return on the recording's clock, in nanoseconds."""
    def payers(self, finding: int, calls: list[int]) -> list[int]:
        """Those of ``calls`` that pay for ``findings[finding]``."""
    def cost(self, finding: int, calls: list[int]) -> tuple[int, int, int, int]:
        """How many of ``calls`` pay for it, and what together: nanoseconds, requests, bytes."""

@type_check_only
class CatalogueEntry(TypedDict):
    """One cause, found in one kind of results."""

    code: str
    family: str
    found_in: Literal["recording", "load"]
    meaning: str
    """One sentence that describes the cause."""
    context: str
    """Name of the schema of its context."""

@type_check_only
class CatalogueAlternative(TypedDict):
    """Another cause that a rule names, with the experiment that would decide."""

    code: str
    decided_by: str

@type_check_only
class Catalogue(TypedDict):
    """Everything that findings can say. Pairs of lists are those of recordings and those of loads."""

    causes: list[CatalogueEntry]
    schemas: dict[str, Any]
    """JSON schemas of the contexts and of the types that contexts use, by name."""
    families: list[str]
    roles: list[str]
    reasons: tuple[list[str], list[str]]
    disproofs: tuple[list[str], list[str]]
    alternatives: list[CatalogueAlternative]
    phases: list[str]

def catalogue() -> Catalogue:
    """The catalogue of all findings, made anew for each call."""

def explained(paths: list[str], *, behind: list[str] = ..., spans: str | None = None) -> Explained:
    """Explanation of saved recordings; several of one machine are explained as one. A single
    file is explained while it is read, so that
    it may be large; ``behind`` are of servers behind a gateway, and ``spans`` is a file of spans in OTLP JSON or Jaeger
    JSON."""

def explained_spans(path: str) -> Explained:
    """Explanation of a file of spans alone: its calls are those that MCP servers tell of."""

def record_stdio(
    command: list[str], file: str | None = None, body_limit: int = 65536, *, ring: tuple[str, int] | None = None
) -> int:
    """Runs a server between this process's stdin and stdout, recording to ``file`` or, as a flight recorder, to the
    folder of ``ring`` within its limit in bytes; returns the server's exit code."""

def open_connections() -> int:
    """Number of open connections of clients to the HTTP servers of this process."""

@final
class ConfigNode:
    """A value of a configuration and its place, in bytes of the text."""

    start: int
    end: int
    text: str | None
    """A string's text."""
    items: list[ConfigNode] | None
    """An array's values."""
    members: list[ConfigMember] | None
    """A table's members, in the order of the text."""
    has_lines: bool
    """Whether the members stand on lines of their own, as those of a TOML table, and not between braces. Such a table
    has no place."""

@final
class ConfigMember:
    """A member of a table. ``start`` and ``end`` are the place of its name, without the names of the tables before."""

    name: str
    start: int
    end: int
    node: ConfigNode

def parse_config(text: str, *, toml: bool = False) -> ConfigNode:
    """Parses JSON with comments and trailing commas, or TOML. Raises :class:`UsageProblem` for another text."""

@final
class Handler:
    """One Python function and how the runtime calls it: from argument bytes to a reply."""

    def __new__(
        cls,
        function: Callable[..., Any],
        *,
        kind: Literal["sync", "async"] = "sync",
        validate: Callable[[bytes], dict[str, Any]] | None = None,
        fast_path: Callable[[bytes], dict[str, Any]] | None = None,
        context: str | None = None,
        wrap_context: Callable[[Any], Any] | None = None,
        output: Literal["text", "wrapped-text", "structured", "finished", "custom"] = "custom",
        finish: Callable[[Any], bytes | str | tuple[bytes | str, bytes | str | Literal[True]]] | None = None,
        plain: Literal["int", "bool", "dict[int]", "dict[bool]", "dict[str]", "dict"] | None = None,
        fail: Callable[[BaseException], bytes | str | tuple[int, str, str | None]] | None = None,
    ) -> Handler:
        """
        ``validate`` makes keyword arguments of the arguments' JSON; without it none are given. The model
        gets the words of pydantic's ``ValidationError``. ``fast_path`` is asked before it, if there is one, and
        decides unless it raises that exception.

        ``output``: ``text`` and ``wrapped-text`` take a ``str`` and never leave Rust (another value goes to ``finish``
        as with ``custom``, where there is one). ``structured``: ``finish(value)`` gives the JSON of
        ``structuredContent`` and the text block (``True``: that JSON, indented by two spaces), or a whole result as
        ``custom`` has it; without ``finish`` the function returns that itself. ``custom``: ``finish(value)`` gives a
        whole ``CallToolResult`` as JSON. ``finished``: the function returns that itself.

        ``plain``: what is written of a ``structured`` output's values without ``finish``, where they are of exactly
        these types: ``int`` and ``bool`` as ``{"result": …}``; a dictionary of text to ``int``, ``bool``, ``str``, or
        to anything of these, ``None``, and lists and dictionaries of them.

        ``fail(exception)`` answers for what was raised: a ``CallToolResult`` as JSON (``isError`` is set), an
        ``InputRequiredResult`` as JSON, or ``(code, message, data as JSON)`` for a JSON-RPC error.

        ``wrap_context`` is called with each call's :class:`Context`, within the call's context variables; what it
        returns is given under the keyword ``context``, if there is one.
        """

@final
class AccessRequest:
    """An access request: a caller and its target. Permissions get it, and functions for the keys of rate limits."""

    kind: Literal["tool", "resource", "template", "prompt"]
    name: str
    uri: str | None
    """The resource that is read by a template, which ``name`` is."""
    principal: Any
    """The token verifier's result."""
    session_id: str | None
    headers: dict[str, str] | None
    transport: Literal["http", "stdio", "memory", "process"]
    """The road that the request came by; of a call within the process, none."""
    listing: bool
    """Whether it is only to be listed."""

@final
class GuardAnswer:
    """The answer of a function that a guard asks: a permission, or the key of a rate limit."""

    @staticmethod
    def allowed() -> GuardAnswer: ...
    @staticmethod
    def denied(message: str | None = None, scopes: Sequence[str] | None = None) -> GuardAnswer:
        """``message`` is for the client; ``scopes`` are those that would be enough."""
    @staticmethod
    def keyed_by(key: str) -> GuardAnswer: ...

@final
class RateLimit:
    """How often something may be used. Limits of one name and the same figures count together."""

    def __new__(
        cls,
        name: str,
        calls: int,
        per_s: float,
        *,
        by: Literal["principal", "session", "everyone"]
        | Callable[[AccessRequest], str | Awaitable[str]]
        | str
        | None = None,
        algorithm: Literal["fixed-window", "sliding-window", "token-bucket"] | str = "sliding-window",
        burst: int | None = None,
    ) -> RateLimit: ...

@final
class Guard:
    """All that guards one tool, resource or prompt."""

    def __new__(
        cls,
        *,
        scopes: Sequence[str] = ...,
        permissions: Sequence[Callable[[AccessRequest], object]] = ...,
        limits: Sequence[RateLimit] = ...,
        max_result_bytes: int | None = None,
        timeout_s: float | None = None,
        permission_timeout_s: float = ...,
    ) -> Guard:
        """
        A permission lets pass by ``None`` or ``True``, refuses by ``False`` or ``mcpace.Denied``; what
        else it returns or raises refuses too, and is logged. Coroutine functions run on the loop, others as tools do.
        """

@final
class Limiter:
    """Counter of uses for rate limits."""

    @staticmethod
    def memory(*, keys: int = 100_000, frozen: bool = False) -> Limiter:
        """One of this process, bounded in keys. ``frozen``: its clock stands still until ``advance``, for tests."""
    def advance(self, seconds: float) -> None: ...

@final
class Server:
    """A registry of Python functions, served by the runtime as often as wanted. Thread-safe."""

    def __new__(
        cls,
        name: str,
        version: str,
        *,
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: bytes | str | None = None,
        page_size: int = 1000,
        ttl_ms: int = 0,
        cache_scope: Literal["private", "public"] | str = "private",
        tell_failures: bool = False,
        key: bytes | None = None,
        revisions: list[str] | None = None,
        extensions: bytes | str | None = None,
        keep_headers: bool = True,
        threads: int = 40,
        open: bool = False,
        limiter: Limiter | None = None,
        on_limiter_down: Literal["refuse", "allow"] | str = "refuse",
        max_tasks: int | None = None,
    ) -> Server:
        """
        ``icons`` and ``extensions`` (settings by name) are JSON. ``key`` (32 bytes) protects ``requestState``: servers
        behind one address need the same. ``keep_headers``: a call that takes a context has the request's headers.
        ``threads``: how many functions that are not quick may run at a time. ``open``: tools, resources and prompts
        are declared where there are none, since some may come later. ``limiter`` counts uses for rate limits; without
        one each server counts in its own memory. ``on_limiter_down``: whether they pass where it can't. ``max_tasks``:
        how many tasks are kept at a time.
        """
    def add_tool(
        self,
        listed: bytes | str,
        handler: Handler,
        *,
        timeout_s: float | None = None,
        guard: Guard | None = None,
        task: Literal["optional", "required", "on-demand"] | str | None = None,
        task_ttl_s: float | None = None,
        task_poll_interval_s: float | None = None,
    ) -> None:
        """
        ``listed`` is the tool's JSON as ``tools/list`` tells it. ``task``: whether calls run as tasks of 2026-07-28
        where the client takes them (``optional``), always (``required``), or once the handler asks for it
        (``on-demand``). Raises :class:`RegistrationProblem`.
        """
    def remove_tool(self, name: str) -> bool:
        """Whether there was one. Calls under way go on."""
    def add_resource(
        self, listed: bytes | str, handler: Handler, *, timeout_s: float | None = None, guard: Guard | None = None
    ) -> None:
        """The handler gets no arguments and gives a ``ReadResourceResult`` as JSON (output ``finished`` or ``custom``);
        contents without ``uri`` or ``mimeType`` get the resource's."""
    def remove_resource(self, uri: str) -> bool: ...
    def add_resource_template(
        self, listed: bytes | str, handler: Handler, *, timeout_s: float | None = None, guard: Guard | None = None
    ) -> None:
        """As ``add_resource``; the arguments are the template's variables, all strings."""
    def remove_resource_template(self, template: str) -> bool: ...
    def add_prompt(
        self, listed: bytes | str, handler: Handler, *, timeout_s: float | None = None, guard: Guard | None = None
    ) -> None:
        """The handler gives a ``GetPromptResult`` as JSON."""
    def remove_prompt(self, name: str) -> bool: ...
    def set_completer(self, handler: Handler) -> None:
        """
        Has one function propose for all arguments of prompts and resource templates. Its arguments: ``ref``,
        ``argument`` (``name``, ``value``), ``context`` (``arguments``). It gives a ``Completion`` as JSON.
        """
    def list_changed(self, list: Literal["tools", "prompts", "resources"] | str, *, everywhere: bool = True) -> None:
        """Tells clients that want to know. Additions and removals are told to clients without a further call."""
    def resource_updated(self, uri: str, *, everywhere: bool = True) -> None:
        """Tells the clients that watch it."""
    def notify(self, session_id: str, method: str, params: str | None = None) -> Awaitable[None]:
        """Tells the client of one session something; ``params`` is JSON."""
    def notify_all(self, method: str, params: str | None = None) -> Awaitable[None]:
        """Tells the clients of all sessions that read a stream something."""
    def observe(self, observations: Observations) -> bool:
        """Has all requests told from now on; whether nobody is told already."""
    def event_loop(self) -> asyncio.AbstractEventLoop:
        """The loop that asynchronous functions run on, on a thread of its own; started where it wasn't."""
    def delegate(self, submit: Callable[[Exchange], object], methods: list[str]) -> None:
        """
        Puts a server with handlers of its own behind the registry: requests of these methods go to ``submit``, but for
        ``tools/call`` of tools that are registered. It is called on an I/O thread and must not wait. Once only.
        """
    def serve_http(self, options: HttpOptions) -> Running:
        """Returns at once. Functions see the context variables that are set here."""
    def endpoint(self, options: HttpOptions) -> Endpoint:
        """The HTTP endpoint without a socket; of the options, those that say where and how to listen mean nothing."""
    def serve_stdio(self, *, server_timing: bool = False) -> None:
        """Serves stdin and stdout until the client leaves; a signal's handler may raise."""

@final
class Observations:
    """
    Requests as they end, for one thread that tells of them. Bounded: where nobody takes them, later ones are only
    counted.

    A request is ``(facts, live, entered_ns, service, ended_ns, failure)``: ``facts`` is ``(method, target, uri, id,
    revision, meta, headers, received_ns)``, where ``meta`` and ``headers`` (``None`` over stdio) are ``(traceparent,
    tracestate, baggage)``; ``live`` is what ``begin`` returned, ``service`` ``(called_ns, returned_ns)``, both ``None``
    where no function of Python's was called; ``failure`` is ``(kind, code, words)``, the kind ``tool``, ``error`` or
    ``cancelled``. Times are nanoseconds since 1970.
    """

    def __new__(cls, begin: Callable[[tuple[Any, ...], int, contextvars.Context, Any], Any]) -> Observations:
        """``begin(facts, now_ns, variables, live)`` is called before a function of Python's is, which then runs in
        ``variables``; ``live`` is what it returned for the same request before."""
    def take(self) -> tuple[list[Any], int] | None:
        """Some of those that ended, and how many were lost; waits for the first. ``None`` once it is closed."""
    def take_now(self) -> tuple[list[Any], int]:
        """All of them, without waiting."""
    def close(self) -> None:
        """No more are kept."""

@final
class Context:
    """Context of one call: facts about the request, and questions to the client."""

    request_id: int | str
    revision: str
    method: str
    params: bytes | None
    """The request's parameters as JSON."""
    session_id: str | None
    """In HTTP, where there is a session."""
    client_info: bytes | None
    client_capabilities: bytes | None
    principal: Any
    """The token verifier's result."""
    headers: dict[str, str]
    connection: tuple[tuple[str, int] | None, tuple[str, int] | None, str] | None
    """Client, server and scheme, as ASGI has them; ``None`` where the request came another way than HTTP."""
    """By name in lower case; empty over stdio. Client-supplied: never a proof of who calls."""
    meta: bytes | None
    input_responses: bytes | None
    """Answers of the rounds before, by key; ``None`` in the first round."""
    request_state: str | None
    def is_cancelled(self) -> bool: ...
    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None: ...
    def log(self, level: str, logger: str | None, data: bytes | str) -> None:
        """``data`` is JSON."""
    def release(self) -> None:
        """Lets the client's connection go, not the call (2025-11-25)."""
    def elicitation_complete(self, elicitation_id: str) -> None: ...
    def notify(self, method: str, params: bytes | str | None = None) -> None:
        """Sends any notification ahead of the result."""
    def elicit(self, params: bytes | str) -> Awaitable[bytes]:
        """Raises :class:`AskProblem`; :class:`InputRequired` where the round ends with the question."""
    def sample(self, params: bytes | str) -> Awaitable[bytes]: ...
    def list_roots(self) -> Awaitable[bytes]: ...
    @property
    def task_id(self) -> str | None: ...
    def begin_task(self) -> Awaitable[bytes]:
        """Raises :class:`AskProblem` where the client takes no tasks."""

def admit(
    server: Server,
    kind: Literal["tool", "resource", "template", "prompt"],
    name: str,
    principal: Any = None,
    *,
    uri: str | None = None,
) -> Pending:
    """
    Takes what a client's request would take before its handler runs: scopes, permissions, limits. A :class:`Pending` of
    ``None``, or of the JSON-RPC reply that refuses.
    """

def may_see(
    server: Server,
    kind: Literal["tool", "resource", "template", "prompt"],
    names: list[str],
    principal: Any = None,
    *,
    exchange: Exchange | None = None,
) -> Pending:
    """
    Whether a list would show them, to ``principal`` or to who sent ``exchange``: a :class:`Pending` of a list of bools.
    """

def _stop_all() -> None:
    """Stops all servers and threads; ``atexit`` calls it."""

def set_process_key(key: bytes) -> None:
    """The key (32 bytes) of servers made from now on that are given none; once in a process."""

def redis_limiter(
    url: str, *, on_store_down: Literal["refuse", "memory"] | str = "refuse", prefix: str = ...
) -> Limiter:
    """A limiter that counts over all processes which share a Redis."""

def set_access_token(make: Callable[..., Any]) -> None:
    """Sets the function that makes :attr:`Context.principal` of a :class:`NativeVerifier`'s token, of the keywords
    ``token``,
    ``client_id``, ``scopes``, ``expires_at``, ``resource``, ``subject`` and ``claims`` (JSON); once in a process."""

@disjoint_base
class NativeVerifier:
    """A verifier of tokens that needs no Python. Raises :class:`UsageProblem` where it can't be made."""

    def verify(self, token: str) -> Awaitable[Any]:
        """
        The object that :func:`set_access_token` makes of a good token; ``None``. Raises :class:`EnvironmentProblem`
        where nobody
        can tell.
        """

@final
class JwtVerifier(NativeVerifier):
    def __new__(
        cls,
        *,
        jwks_uri: str | None = None,
        public_key: str | None = None,
        jwks: str | None = None,
        secret: str | None = None,
        algorithms: list[str] = ...,
        issuers: list[str] = ...,
        audiences: list[str] = ...,
        leeway_s: float = 10.0,
        needs_expiry: bool = True,
        key_lifetime_s: float = 3600.0,
        keys_kept_s: float = 86400.0,
        key_interval_s: float = 30.0,
        timeout_s: float = 10.0,
        extra_root: str | None = None,
        without_tls: bool = False,
    ) -> JwtVerifier: ...

@final
class IntrospectionVerifier(NativeVerifier):
    def __new__(
        cls,
        *,
        url: str,
        client_id: str,
        client_secret: str,
        client_auth: Literal["client_secret_basic", "client_secret_post"] | str = "client_secret_basic",
        audiences: list[str] = ...,
        issuers: list[str] = ...,
        kept_s: float = 60.0,
        grace_s: float = 0.0,
        refusals_kept_s: float = 5.0,
        most_kept: int = 10_000,
        timeout_s: float = 10.0,
        extra_root: str | None = None,
        without_tls: bool = False,
    ) -> IntrospectionVerifier: ...

@final
class StaticVerifier(NativeVerifier):
    def __new__(
        cls,
        tokens: list[tuple[str, str, str | None, list[str], float | None, list[str], str]] | None = None,
        *,
        anyone: tuple[str, list[str]] | None = None,
        beyond_loopback: bool = False,
    ) -> StaticVerifier:
        """``tokens``: token, client, subject, scopes, end, audiences, claims as JSON. ``anyone``: client and scopes."""

@final
class HttpOptions:
    """How to serve over HTTP. The defaults are safe: loopback, bounded everywhere."""

    def __new__(
        cls,
        *,
        host: str = "127.0.0.1",
        port: int = 8000,
        path: str = "/mcp",
        response: Literal["auto", "json", "sse"] | str = "auto",
        stateless: bool = False,
        threads: int = 1,
        shared_port: bool = False,
        family: tuple[int, list[str]] | None = None,
        tls: tuple[bytes, bytes] | None = None,
        allowed_hosts: list[str] = ...,
        allowed_origins: list[str] = ...,
        server_timing: bool = False,
        access_log: bool = False,
        legacy_sse: bool = False,
        grace_s: float = 10.0,
        resumable: bool = True,
        retry_s: float = 1.0,
        keep_alive_s: float = 15.0,
        limits: dict[str, float] | None = None,
        token_verifier: Callable[..., Awaitable[Any]] | NativeVerifier | None = None,
        resource: str | None = None,
        authorization_servers: list[str] = ...,
        required_scopes: list[str] = ...,
        token_timeout_s: float = 10.0,
        check_resource: bool = False,
        asgi: Callable[..., Awaitable[None]] | None = None,
        store: str | None = None,
        on_store_down: Literal["refuse", "memory"] | str = "refuse",
        store_prefix: str = ...,
    ) -> HttpOptions:
        """``shared_port``: with other processes of this user (``SO_REUSEPORT``). ``family``: which of
        several such processes this is, from 0, and the Unix socket of each; a request of another's session is passed on
        to it. ``store``: the URL of a Redis that keeps sessions and streams for all processes of the same
        ``store_prefix``; ``on_store_down``: ``refuse`` them while it is away, or go on in this process's ``memory``.
        ``tls``: certificate chain and key, as PEM. ``grace_s``: how long :meth:`Running.stop` waits for what is in
        flight.

        ``limits``: any of ``body``, ``head``, ``nesting``, ``batch``, ``connections``, ``http2_streams``, ``sessions``,
        ``standalone_streams``, ``session_streams``, ``stream_events``, ``stream_bytes``, ``connection_reply_bytes``,
        ``session_reply_bytes``, ``session_replay_bytes``, ``replay_bytes``, ``session_idle_s``,
        ``session_life_s``, ``replay_time_s``, ``connection_idle_s``, ``head_time_s``, ``body_time_s``,
        ``write_stall_s``.

        ``access_log``: a line on stderr for each request.

        ``token_verifier``: a coroutine function with the keyword ``token``, awaited on :meth:`Server.event_loop`; gives
        ``None``, or an object with ``client_id`` and as far as known ``subject``, ``scopes``, ``expires_at`` (seconds
        since 1970), which :attr:`Context.principal` is. Or a :class:`NativeVerifier`, for which no Python runs;
        ``check_resource``: its tokens must name ``resource`` as their audience. ``resource``: the endpoint's URL as
        clients see it.

        ``asgi``: an ASGI 3 application for all other paths, run on :meth:`Server.event_loop`."""

@final
class Endpoint:
    """The HTTP endpoint without a socket, for a host that has its own."""

    def call(
        self,
        method: str,
        target: str,
        headers: list[tuple[bytes, bytes]],
        body: bytes,
        *,
        client: tuple[str, int] | None = None,
        server: tuple[str, int] | None = None,
        scheme: str = "http",
    ) -> Awaitable[Reply]:
        """Answers a request whose body is there. ``target``: path and query. ``client``, ``server`` and ``scheme`` are
        what ASGI says of the connection. Cancelled, it cancels the call."""

@final
class Reply:
    """An answer of an :class:`Endpoint`; its body comes piece by piece."""

    status: int
    headers: list[tuple[bytes, bytes]]
    is_stream: bool
    """Whether more may come after the first piece."""
    def next(self) -> Awaitable[bytes | None]:
        """The next piece; ``None`` at the end."""
    def close(self) -> Awaitable[None]:
        """The client has gone away: what is under way for it is cancelled."""

@final
class Running:
    """A server that serves."""

    address: str
    """``host:port``."""
    port: int
    def wait(self) -> None:
        """Waits until it has stopped; a signal's handler may raise."""
    def stop(self) -> int:
        """Takes nothing new, finishes what is in flight, ends the rest: how many connections it cut off. Does nothing
        the second time."""

@final
class Exchange:
    """One request that a server behind the registry answers, by ``reply`` or ``fail``, from any thread."""

    method: str
    params: bytes | None
    """A JSON object."""
    id: int | str
    revision: str
    headers: list[tuple[bytes, bytes]] | None
    """In their order, names in lower case, as ASGI has them; ``None`` where the request came another way than HTTP."""
    target: str | None
    """Path and query; ``None`` where the request came another way than HTTP."""
    connection: tuple[tuple[str, int] | None, tuple[str, int] | None, str] | None
    """Client, server and scheme, as ASGI has them; ``None`` where the request came another way than HTTP."""
    token: Any | None
    """The token verifier's result for the caller."""
    has_session: bool
    """Whether there is a legacy session; the one that begins with it, for ``initialize``."""
    kept: Any | None
    """The value that ``keep`` was given in this session."""
    is_cancelled: bool
    def keep(self, value: Any) -> bool:
        """Keeps a value for as long as the session lives; false where there is none, or something is kept already."""
    def on_cancel(self, callback: Callable[[], object]) -> None:
        """``callback()`` is called, on any thread, when the client no longer wants the answer."""
    def reply(self, result: bytes | str) -> None:
        """Answers with a result, a JSON object; it reaches the client as it is."""
    def fail(self, code: int, message: str, data: str | None = None) -> None:
        """Answers with a JSON-RPC error."""
    def notify(self, method: str, params: str | None = None) -> None:
        """Sends a notification ahead of the answer."""
    def release(self) -> None:
        """Closes the stream of the request; the client resumes the stream for the answer."""
    def ask(
        self,
        method: str,
        params: str | None,
        done: Callable[[bytes | None, tuple[int, str] | None], object],
    ) -> None:
        """Asks the client in a legacy session; ``done(result, error)`` is called from another thread."""
