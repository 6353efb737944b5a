"""Serves the page and a folder of runs on loopback, to clients with the token.

Design constraint: the server is read-only, and no path of a request reaches the file system. Each request must name
this host and port (another site's name may resolve to loopback), must come from this page, and must have the token in a
header that no other site can set.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from pydantic import BaseModel

from mcpace.lab.errors import UsageProblem
from mcpace.report.model.run import RunFormatError
from mcpace.report.page.html import shell
from mcpace.ui.folder import Folder, Missing, refusal_reason

HOST = "127.0.0.1"
TOKEN = "x-mcpace-token"
IDLE_LIMIT_S = 20.0
MOST_AT_ONCE = 64
"""Maximum number of connections. A further connection replaces the one that has been idle for longest."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Server(ThreadingHTTPServer):
    """An HTTP server on loopback, which serves until ``shutdown``."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = MOST_AT_ONCE

    def __init__(self, folder: Folder, port: int) -> None:
        self.folder = folder
        self.token = secrets.token_urlsafe(24)
        self.page = shell().encode()
        self._open: dict[socket, bool] = {}
        self._lock = threading.Lock()
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        """The address with the token in its fragment, which no browser sends."""
        return f"http://{HOST}:{self.server_port}/#token={self.token}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Accepted values of the header ``Host``."""
        return f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Accepts a connection. Any program of this machine may open idle connections, so an idle connection is closed
        to make room."""
        with self._lock:
            silent = next((one for one, answered in self._open.items() if not answered), None)
            if len(self._open) >= MOST_AT_ONCE and silent is not None:
                del self._open[silent]
                _hang_up(silent)
            if has_room := len(self._open) < MOST_AT_ONCE:
                self._open[request] = False
        if has_room:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serves a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.pop(request, None)

    @contextmanager
    def answering(self, request: socket) -> Iterator[None]:
        """Protects a connection from being replaced while its answer is computed. Afterwards it counts as idle, even if
        the client doesn't read the answer."""
        self._mark(request, answered=True)
        try:
            yield
        finally:
            self._mark(request, answered=False)

    def mark_idle(self, request: socket) -> None:
        """Marks a connection as idle: its answer is complete and only has to be sent."""
        self._mark(request, answered=False)

    def _mark(self, request: socket, *, answered: bool) -> None:
        with self._lock:
            if self._open.pop(request, None) is not None:
                self._open[request] = answered  # at the end, so that the connection idle for longest is first

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        """Ignores errors of a connection, because a client may disconnect at any time."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "mcpace"
    sys_version = ""
    timeout: ClassVar[float] = IDLE_LIMIT_S

    def do_GET(self) -> None:
        """Answers a request. There are no other methods."""
        with self.server.answering(self.connection):
            if refusal := self._refusal():
                return self._refuse(HTTPStatus.FORBIDDEN, refusal)
            try:
                place = urlsplit(self.path)
                query = parse_qs(place.query, max_num_fields=8)
            except ValueError:
                return self._refuse(HTTPStatus.BAD_REQUEST, "that is no address of this server")
            return self._get(place.path, query)

    def _get(self, path: str, query: dict[str, list[str]]) -> None:
        if path == "/":
            self._answer(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page)
        elif not path.startswith("/api/"):
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing of that name")
        elif not hmac.compare_digest(self.headers.get(TOKEN, "").encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.UNAUTHORIZED, "open the address that mcpace ui printed: its token is missing here")
        else:
            self._answer_api(path.removeprefix("/api/"), query)

    def _refusal(self) -> str:
        """The reason for refusing a request that doesn't come from this page; empty for others."""
        if self.headers.get_all("Host", []) not in [[host] for host in self.server.hosts]:
            return "this server answers to its own address only"
        origin = self.headers.get("Origin")
        if origin is not None and origin not in [f"http://{host}" for host in self.server.hosts]:
            return "this server answers to its own page only"
        if self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none") and not self._is_opened():
            return "this server answers to its own page only"
        return ""

    def _is_opened(self) -> bool:
        """Whether the request opens the page itself. Every site may link to the page, which contains no data; mcpace's
        redirecting file does."""
        return self.path == "/" and self.headers.get("Sec-Fetch-Mode") == "navigate"

    def _answer_api(self, what: str, query: dict[str, list[str]]) -> None:
        folder = self.server.folder

        def one(name: str) -> str:
            return query.get(name, [""])[0]

        found: BaseModel
        try:
            match what:
                case "runs":
                    found = folder.listing()
                case "run":
                    found = folder.page(one("id"))
                case "flight":
                    found = folder.flight(one("id"))
                case "live":
                    found = folder.live(one("id"))
                case "compare":
                    found = folder.comparison(one("first"), one("second"))
                case _:
                    raise Missing("there is nothing of that name")
            body = found.model_dump_json(exclude_none=True).encode()
        except Missing as problem:
            self._refuse(HTTPStatus.NOT_FOUND, str(problem))
        except UsageProblem as problem:
            self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, str(problem))
        except RunFormatError as problem:
            self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, f"that file is {problem}")
        except OSError as problem:
            self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, f"that file can't be read: {problem.strerror}")
        except Exception as problem:  # the file may contain anything, and the page reports the failure
            self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, refusal_reason(problem))
        else:
            self._answer(HTTPStatus.OK, "application/json", body)

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self._answer(status, "application/json", json.dumps({"error": reason}).encode())

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.server.mark_idle(self.connection)
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": content_type, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Discards the log of requests."""


def _hang_up(connection: socket) -> None:
    try:
        connection.shutdown(SHUT_RDWR)
    except OSError:
        return  # it is closed already
