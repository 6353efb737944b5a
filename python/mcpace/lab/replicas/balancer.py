"""A load balancer for HTTP on loopback, in front of the copies of a server.

It is an instrument, not a product: a thread a connection, a new connection to the copy for each request. It passes
bytes on as they come, tries another copy only where a connection is refused (as proxies do by default), and knows
nothing of MCP but the headers with the session's id and the method. A request whose copy ends meanwhile gets status
502, or a reply that is cut off. A test can let it break streams off while their copy runs.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import re
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from mcpace.report.model.replicas import Policy

COOKIE = "mcpace-copy"
SESSION_ID = "mcp-session-id"
METHOD = "mcp-method"
"""Header with the JSON-RPC method of a request, since revision 2026-07-28."""
LAST_EVENT = "last-event-id"
GET_TASK, RESUME = "tasks/get", "resume"
COUNTED = (GET_TASK, RESUME)
"""Kinds of requests that are counted: by the header of their method, and those that resume a stream."""
EVENT_WITH_ID = re.compile(rb"^id:[^\r\n]*[^\s:].*?\r?\n\r?\n", re.MULTILINE | re.DOTALL)
MOST_SEARCHED = 65_536
"""Bytes of a stream in which an event with an id is looked for, to break the stream off after it."""
HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host"})
MOST_BODY = 64 * 2**20
CONNECT_LIMIT_S = 5.0
IDLE_LIMIT_S = 60.0
"""Seconds without a byte from a copy after which its reply is given up."""
MOST_SESSIONS = 200_000
"""Most sessions whose copy is remembered; the oldest are forgotten."""
MOST_REFUSALS = 1_000
LONGEST_REFUSAL = 300


@dataclass(eq=False)
class Backend:
    """One copy, as the balancer sees it."""

    number: int
    host: str
    port: int
    in_flight: int = 0
    posts: int = 0
    """The POST requests among those in flight: calls, but not streams that a client keeps open."""


@dataclass(frozen=True)
class Refusal:
    """A request that a copy answered with an error status, or did not answer."""

    status: int
    has_session: bool
    """Whether the request carried the id of a session that a copy gave out."""
    text: str


class Balancer:
    """A balancer that runs until :meth:`stop`. Use as a context manager."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._backends: list[Backend] = []
        self._turns = itertools.count()
        self._sessions: dict[str, Backend] = {}
        self._refusals: list[Refusal] = []
        self._kinds: Counter[str] = Counter()
        self.breaks_streams = False
        balancer = self

        class Handler(_Handler):
            owner = balancer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def add(self, backend: Backend) -> None:
        """Begins to send requests to a copy."""
        with self._lock:
            self._backends.append(backend)

    def remove(self, backend: Backend) -> None:
        """Sends no further requests to a copy, as a health check does that fails."""
        with self._lock:
            self._backends = [one for one in self._backends if one is not backend]

    def backend_of_session(self, session: str) -> Backend | None:
        """The copy that gave the session its id."""
        with self._lock:
            return self._sessions.get(session)

    @contextlib.contextmanager
    def break_streams(self) -> Iterator[None]:
        """Breaks streams that answer a POST off after their first event with an id, while the block runs."""
        self.breaks_streams = True
        try:
            yield
        finally:
            self.breaks_streams = False

    def take_refusals(self) -> list[Refusal]:
        """The refusals since the last time."""
        with self._lock:
            found, self._refusals = self._refusals, []
        return found

    def note_refusal(self, refusal: Refusal) -> None:
        """Keeps a refusal, as far as there is room."""
        with self._lock:
            if len(self._refusals) < MOST_REFUSALS:
                self._refusals.append(refusal)

    def count_kind(self, kind: str) -> int:
        """Number of requests of a counted kind so far."""
        with self._lock:
            return self._kinds[kind]

    def await_kind(self, kind: str, count: int, limit_s: float) -> None:
        """Waits until there were as many requests of a counted kind, or until the time limit."""
        with self._changed:
            self._changed.wait_for(lambda: self._kinds[kind] >= count, limit_s)

    def await_posts(self, count: int, limit_s: float) -> None:
        """Waits until as many POST requests are in flight at the copies, or until the time limit."""
        with self._changed:
            self._changed.wait_for(lambda: sum(one.posts for one in self._backends) >= count, limit_s)

    def stop(self) -> None:
        """Ends the balancer. Harmless the second time."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5.0)

    def __enter__(self) -> Balancer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def candidates(self, session: str, cookie: str) -> list[Backend]:
        """The copies in the order in which they are tried."""
        with self._lock:
            found = list(self._backends)
            known = self._sessions.get(session) if self.policy == "session" else None
            if self.policy == "cookie":
                known = next((one for one in found if str(one.number) == cookie), None)
            # A request that stays at its copy takes no turn: new sessions are spread evenly.
            first = found.index(known) if known in found else next(self._turns) % max(len(found), 1)
            if self.policy == "least-connections":
                first = min(
                    range(len(found)), key=lambda at: (found[at].in_flight, (at - first) % len(found)), default=0
                )
        return found[first:] + found[:first]

    def note_session(self, session: str, backend: Backend) -> None:
        with self._lock:
            self._sessions.setdefault(session, backend)
            if len(self._sessions) > MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]

    @contextlib.contextmanager
    def count_request(self, backend: Backend, method: str, kind: str) -> Iterator[None]:
        """Counts a request as in flight at a copy while the block runs."""
        is_post = int(method == "POST")
        with self._lock:
            if kind in COUNTED:
                self._kinds[kind] += 1
            backend.in_flight += 1
            backend.posts += is_post
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._lock:
                backend.in_flight -= 1
                backend.posts -= is_post


class _Handler(BaseHTTPRequestHandler):
    """Passes one request on."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_LIMIT_S
    owner: Balancer
    disable_nagle_algorithm = True

    def _pass_on(self) -> None:
        length = self.headers.get("content-length", "0")
        if "transfer-encoding" in self.headers or not length.isdecimal() or int(length) > MOST_BODY:
            self._refuse(411, "this balancer needs a Content-Length of at most 64 MiB")
            return
        body = self.rfile.read(int(length))
        kind = RESUME if LAST_EVENT in self.headers else self.headers.get(METHOD, "")
        for backend in self.owner.candidates(self.headers.get(SESSION_ID, ""), self._cookie()):
            connection = http.client.HTTPConnection(backend.host, backend.port, timeout=CONNECT_LIMIT_S)
            try:
                connection.connect()
            except OSError:
                connection.close()
                continue
            with self.owner.count_request(backend, self.command, kind), contextlib.closing(connection):
                self._exchange(backend, connection, body)
            return
        self._refuse(503, "no copy of the server accepts connections")

    do_GET = do_POST = do_DELETE = do_OPTIONS = _pass_on

    def _exchange(self, backend: Backend, connection: http.client.HTTPConnection, body: bytes) -> None:
        assert connection.sock is not None, "connected"
        connection.sock.settimeout(IDLE_LIMIT_S)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        # Servers that check the Host header against other sites see the copy's own address.
        headers["Host"] = f"{backend.host}:{backend.port}"
        try:
            connection.request(self.command, self.path, body=body or None, headers=headers)
            reply = connection.getresponse()
        except (OSError, http.client.HTTPException) as problem:
            self._refuse(502, f"the copy ended before it answered: {type(problem).__name__}")
            return
        if (session := reply.getheader(SESSION_ID)) is not None:
            self.owner.note_session(session, backend)
        if reply.status >= 400 and self.command == "POST":
            self._note_refusal(reply.status, f"{reply.status} {reply.reason}")
        self.send_response_only(reply.status, reply.reason)
        for name, value in reply.getheaders():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        if self.owner.policy == "cookie":
            self.send_header("Set-Cookie", f"{COOKIE}={backend.number}; Path=/; HttpOnly")
        has_length = reply.getheader("content-length") is not None or reply.status in (204, 304)
        if not has_length:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._pass_body(reply, chunked=not has_length)

    def _pass_body(self, reply: http.client.HTTPResponse, *, chunked: bool) -> None:
        is_stream = (reply.getheader("content-type") or "").startswith("text/event-stream")
        breaks = is_stream and self.command == "POST" and self.owner.breaks_streams
        passed = b""
        try:
            while part := reply.read1(65_536):
                if breaks and len(passed) < MOST_SEARCHED:
                    passed += part
                    if (event := EVENT_WITH_ID.search(passed)) is not None:
                        part = part[: len(part) - (len(passed) - event.end())]
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
                        self.close_connection = True
                        return
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
            if not chunked and reply.length:
                raise http.client.IncompleteRead(b"")
            if chunked:
                self.wfile.write(b"0\r\n\r\n")
        except (OSError, http.client.HTTPException):
            # The copy or the client has gone: the reply stays incomplete.
            self.close_connection = True

    def _cookie(self) -> str:
        try:
            found = SimpleCookie(self.headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return ""
        return found.value if found is not None else ""

    def _note_refusal(self, status: int, text: str) -> None:
        known = self.owner.backend_of_session(self.headers.get(SESSION_ID, "")) is not None
        self.owner.note_refusal(Refusal(status, known, text[:LONGEST_REFUSAL]))

    def _refuse(self, status: int, text: str) -> None:
        if self.command == "POST":
            self._note_refusal(status, f"{status}: {text}")
        content = text.encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""

    def handle(self) -> None:
        """Handles a connection. A client that goes away is no error."""
        with contextlib.suppress(OSError):
            super().handle()


def backend_of(number: int, url: str) -> Backend:
    """The copy at a URL."""
    parts = urlsplit(url)
    return Backend(number, parts.hostname or "127.0.0.1", parts.port or 80)
