"""The settings of a run, given by the command line or by ``MCPServer.run()``, and checked once.

Design constraint: plain values. The settings are sent to worker processes as JSON, and later code never parses text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, Self

from mcpace.server.running.errors import UsageProblem

Transport = Literal["http", "sse", "stdio"]
LogLevel = Literal["critical", "error", "warning", "info", "debug"]

LOG_LEVELS: tuple[LogLevel, ...] = ("critical", "error", "warning", "info", "debug")
MOST_WORKERS = 256
GRACE_S = 10.0
METRICS_HOST = "127.0.0.1"
MOST_PREFIX = 64
_UNNAMED = ("mcp-server", "FastMCP")
"""Names of servers without a given name, in mcpace and in the official SDK."""
_DRAWN = re.compile(r"FastMCP-[0-9a-f]+")
"""The random name that FastMCP gives a server in each process."""

_PATH = re.compile(r"/[A-Za-z0-9\-._~!$&'()*+,;=:@%/]*")
_HOST = re.compile(r"(?:[^\s/?#@:*\[\]]+|\[[0-9A-Fa-f:.]+\])(?::(?:\d{1,5}|\*))?")
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^\s/?#@]+/?")

_STORES = ("redis://", "rediss://", "redis+unix:///", "unix:///", "valkey://", "valkeys://")

_TRANSPORTS: dict[str, Transport] = {
    "http": "http",
    "streamable-http": "http",  # the official SDK's name
    "sse": "sse",
    "stdio": "stdio",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a run."""

    transport: Transport = "http"
    host: str = "127.0.0.1"
    port: int = 8000
    path: str = "/mcp"
    workers: int = 1
    json_response: bool = False
    response: Literal["auto", "sse"] = "auto"
    """``sse`` answers each request with a stream, even if the function sends nothing before its result."""
    stateless: bool = False
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    access_log: bool = False
    log_level: LogLevel | None = None
    """``None`` keeps the level that the server was made with."""
    server_timing: bool = False
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    graceful_timeout_s: float = GRACE_S
    max_body: int | None = None
    """Limit of a request's body, in bytes."""
    max_sessions: int | None = None
    session_idle_s: float | None = None
    retry_s: float | None = None
    """Delay after which clients should reconnect to a lost stream."""
    store: str | None = None
    """The store of sessions and streams that several processes share; ``None`` keeps them in each process."""
    on_store_down: Literal["refuse", "memory"] = "refuse"
    store_prefix: str | None = None
    """The beginning of the store's keys; ``None`` derives it from the server's name (:meth:`prefix_for`)."""
    session_life_s: float | None = None
    """Lifetime of a session, however much it is used."""
    metrics_port: int | None = None
    """Port of Prometheus' metrics; each further worker has the next one."""
    metrics_host: str = METRICS_HOST
    """Address of these ports. The metrics need no token, so it is not ``host``."""
    quiet: bool = False
    """No start message. Warnings and errors are still printed."""
    reload: bool = False
    reload_dirs: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    """Names of the settings that the command line, or the call that runs the server, gives. They override the server
    object's own."""

    def completed(self, own: Mapping[str, Any]) -> Self:
        """These settings, completed by the server object's own. Raises :class:`UsageProblem`."""
        return replace(self, **{name: value for name, value in own.items() if name not in self.given})

    def __post_init__(self) -> None:
        """Raises :class:`UsageProblem` for invalid settings and for settings that contradict each other."""
        if not 0 <= self.port <= 65_535:
            raise UsageProblem(f"there is no port {self.port}: ports are 0 (any that is free) to 65535")
        if self.metrics_port is not None and not 1 <= self.metrics_port <= 65_536 - self.workers:
            raise UsageProblem(
                f"there is no port {self.metrics_port} for the metrics of each worker: choose a lower one"
            )
        if not 1 <= self.workers <= MOST_WORKERS:
            raise UsageProblem(f"{self.workers} workers can't be: 1 to {MOST_WORKERS}")
        if self.metrics_port is not None and self.is_http and 0 <= self.port - self.metrics_port < self.workers:
            raise UsageProblem(
                f"port {self.port} is the server's own, and the metrics of each worker take a port: choose another "
                "--metrics-port"
            )
        if not self.path.startswith("/"):
            raise UsageProblem(f"the path {self.path!r} doesn't begin with a slash: write /{self.path}")
        if not (_PATH.fullmatch(self.path) and "//" not in self.path):
            raise UsageProblem(f"no client could ask for the path {self.path!r}: one is like /mcp, of plain characters")
        for host in self.allowed_hosts:
            if host != "*" and not _HOST.fullmatch(host):
                raise UsageProblem(f"{host!r} is not an allowed host: write a name, or name:port, without http://")
        for origin in self.allowed_origins:
            if origin not in ("*", "null") and not _ORIGIN.fullmatch(origin):
                raise UsageProblem(f"{origin!r} is not an origin: write it as https://app.example")
        if not self.graceful_timeout_s >= 0:
            raise UsageProblem(f"a graceful timeout of {self.graceful_timeout_s} s can't be: 0 or more")
        if (self.ssl_certfile is None) != (self.ssl_keyfile is None):
            missing = "key: add --ssl-keyfile" if self.ssl_keyfile is None else "certificate: add --ssl-certfile"
            raise UsageProblem(f"TLS needs a certificate and a key; there is no {missing}")
        self._check_store()
        if self.response not in ("auto", "sse"):
            raise UsageProblem(f"there is no response {self.response!r}: 'auto' or 'sse'; for JSON, json_response=True")
        if self.json_response and self.response == "sse":
            raise UsageProblem("replies can't be JSON and streams: leave json_response or response out")
        if self.reload and self.workers > 1:
            raise UsageProblem("--reload is for development and runs one process: leave --workers out")
        if self.transport == "stdio" and self.workers > 1:
            raise UsageProblem("stdio has one client and one process: leave --workers out")
        if self.transport == "stdio" and self.reload:
            raise UsageProblem("--reload would lose the client's session over stdio: use it with HTTP")
        if self.transport == "sse" and self.workers > 1:
            raise UsageProblem("the transport sse keeps a client's state in one process: leave --workers out")

    def _check_store(self) -> None:
        if self.on_store_down not in ("refuse", "memory"):
            raise UsageProblem(f"there is no on_store_down {self.on_store_down!r}: 'refuse' or 'memory'")
        if self.store is None:
            return
        if not self.store.startswith(_STORES):
            raise UsageProblem("the store is no Redis: write it as redis://host:6379/0, rediss://… for TLS")
        if self.store_prefix is not None and not 0 < len(self.store_prefix) <= MOST_PREFIX:
            raise UsageProblem(f"the store's prefix has 1 to {MOST_PREFIX} characters")
        if self.transport == "stdio":
            raise UsageProblem("stdio has one client and one process: leave the store out")
        if self.transport == "sse":
            raise UsageProblem("the transport sse keeps a client's state in one process: leave the store out")
        if self.stateless:
            raise UsageProblem("a stateless server has no sessions to keep: leave the store out")

    def prefix_for(self, name: str) -> str:
        """The beginning of the store's keys for a server of this name, which separates servers with different names. A
        name that differs between processes is ignored, because it would separate processes of the same server."""
        if self.store_prefix is not None:
            return self.store_prefix
        return "mcpace:" if name in _UNNAMED or _DRAWN.fullmatch(name) else f"mcpace:{name[:MOST_PREFIX]}:"

    @property
    def is_http(self) -> bool:
        """Whether the server listens on a port."""
        return self.transport != "stdio"

    def to_json(self) -> str:
        """The settings as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads the text of :meth:`to_json`."""
        given: dict[str, Any] = json.loads(text)
        for name in ("allowed_hosts", "allowed_origins", "reload_dirs", "given"):
            given[name] = tuple(given[name])
        return cls(**given)


NAMES = frozenset(field.name for field in fields(Settings)) - {"given", "quiet"}


def log_level(word: str) -> LogLevel:
    """The level of this name, in any case.

    Raises :class:`UsageProblem` for any other word.
    """
    for level in LOG_LEVELS:
        if word.lower() == level:
            return level
    raise UsageProblem(f"there is no log level {word!r}; there are {', '.join(LOG_LEVELS)}")


def transport(word: str) -> Transport:
    """The transport of this name.

    Raises :class:`UsageProblem` for any other word.
    """
    try:
        return _TRANSPORTS[word]
    except KeyError:
        raise UsageProblem(f"there is no transport {word!r}; there are {', '.join(_TRANSPORTS)}") from None
