"""Locates the time of a live target's calls: requests that each reach one layer further, the cheapest first.

TCP connect, TLS handshake, an HTTP request for a path that doesn't exist, ``ping`` (``server/discover`` in the
stateless revisions), ``tools/list``, a call of a tool that doesn't exist, the tool. Over stdio the ladder begins with
``ping``. The requests take turns, so that drift affects all alike. A slow request is repeated less often.

Only the tool of the experiment is called. The request for the path that doesn't exist carries no headers of the user.
"""

from __future__ import annotations

import json
import socket
import ssl
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

from mcpace import _core
from mcpace.lab.errors import Unreachable
from mcpace.lab.load.plan import HttpTarget, LoadPlan, StdioTarget
from mcpace.lab.load.settings import STATELESS_SINCE
from mcpace.report.model.ladder import Ladder, Layer, Rung

REPEATS = 15
LEAST_REPEATS = 2
RUNG_LIMIT_S = 1.0
"""Time of a rung's repeats beyond the least number of them."""
CONNECT_LIMIT_S = 3.0
PATH = "/mcpace-no-such-path"
UNKNOWN_TOOL = "mcpace_no_such_tool"
LAYERS = (("tcp", "network"), ("http", "http"), ("ping", "sdk"), ("unknown-tool", "dispatch"), ("tool", "tool"))
"""Rungs that a call passes on an open connection, each with the layer that it adds."""

Probe = Callable[[], str]
"""Makes one request and returns its answer, where that isn't a result."""


def climb_ladder(plan: LoadPlan, session: Session, budget_s: float) -> Ladder:
    """Measures each rung of the plan's target. The repeats end with the budget; each rung is tried at least once."""
    until = time.monotonic() + budget_s
    rungs: dict[str, Rung] = {}
    probes = session.probes()
    for number in range(REPEATS):
        if isinstance(plan.target, HttpTarget):
            _measure_connection(plan.target, rungs, plan.timeout_s)
        for code, probe in probes.items():
            rung = rungs.setdefault(code, Rung(code=code))
            if _has_turn(rung, number, until):
                _measure_probe(rung, probe)
    for rung in rungs.values():
        rung.median_s = statistics.median(rung.samples_s) if rung.samples_s else None
    found = [rung for rung in rungs.values() if rung.samples_s or rung.failure]
    return Ladder(rungs=found, layers=divide_call(found))


def divide_call(rungs: list[Rung]) -> list[Layer]:
    """Divides the time of a call among the layers. A rung that takes less than an earlier one adds nothing."""
    medians = {rung.code: rung.median_s for rung in rungs if rung.median_s is not None}
    whole_s = medians.get("tool")
    if whole_s is None:
        return []
    reached_s = 0.0
    layers: list[Layer] = []
    for code, layer in LAYERS:
        if code in medians:
            next_s = whole_s if code == "tool" else min(whole_s, max(reached_s, medians[code]))
            layers.append(Layer(code=layer, seconds=next_s - reached_s))
            reached_s = next_s
    return layers


class Session:
    """One session with the target, for single requests."""

    def __init__(self, plan: LoadPlan, caller: _core.Caller) -> None:
        self._caller = caller
        self._is_stateless = plan.revision >= STATELESS_SINCE
        operation = plan.operations[0]
        self._tool, self._arguments = operation.tool or "", json.dumps(operation.arguments or {})

    def probes(self) -> dict[str, Probe]:
        """The rungs that are requests of MCP, by code."""
        return {
            "ping": self.ping,
            "list": lambda: self._await_reply(self._caller.request("tools/list", "{}")),
            "unknown-tool": lambda: self._await_reply(self._caller.call_tool(UNKNOWN_TOOL, "{}")),
            "tool": self.call_tool,
        }

    def ping(self) -> str:
        """Makes the request that does the least work."""
        return self._await_reply(self._caller.request("server/discover" if self._is_stateless else "ping"))

    def call_tool(self) -> str:
        """Calls the tool of the experiment."""
        return self._await_reply(self._caller.call_tool(self._tool, self._arguments))

    def close(self) -> None:
        """Ends the session."""
        self._caller.close().wait()

    def _await_reply(self, pending: _core.Pending) -> str:
        try:
            pending.wait()
        except _core.CallProblem as problem:
            code, sentence, _ = problem.args
            if code != "rpc":
                raise Unreachable(str(sentence)) from problem
            return str(sentence)
        return ""


@contextmanager
def open_session(plan: LoadPlan) -> Iterator[Session]:
    """Opens a session with the plan's target.

    Raises :class:`Unreachable` where the target doesn't answer.
    """
    settings: dict[str, object] = {"mode": plan.revision, "cache": False, "call_time_s": plan.timeout_s}
    target = plan.target
    environment: list[tuple[str, str]] | None = None
    place: str | list[str]
    if isinstance(target, StdioTarget):
        place, environment = target.command, list(target.env.items())
    else:
        place = target.url
        tokens = [value[7:] for name, value in target.headers if _is_bearer(name, value)]
        settings["headers"] = [[name, value] for name, value in target.headers if not _is_bearer(name, value)]
        settings |= {"bearer": tokens[0]} if tokens else {}
        settings |= {"extra_root": target.ca} if target.ca else {}
    try:
        caller = _core.Caller.connect(
            place, json.dumps(settings).encode(), _refuse_question, in_loop=False, environment=environment
        ).wait()
    except (_core.CallProblem, _core.UsageProblem) as problem:
        raise Unreachable(str(problem.args[1] if len(problem.args) > 1 else problem)) from problem
    session = Session(plan, caller)
    try:
        yield session
    finally:
        session.close()


def _is_bearer(name: str, value: str) -> bool:
    return name.lower() == "authorization" and value.lower().startswith("bearer ")


def _refuse_question(question: _core.Question) -> None:
    question.refuse(-32601, "this client answers no questions")


def _has_turn(rung: Rung, number: int, until: float) -> bool:
    if rung.failure:
        return False
    if number < 1:
        return True
    spent_s = sum(rung.samples_s)
    expected_s = spent_s / max(len(rung.samples_s), 1)
    if time.monotonic() + expected_s > until:
        return False
    return number < LEAST_REPEATS or spent_s + expected_s <= RUNG_LIMIT_S


def _measure_probe(rung: Rung, probe: Probe) -> None:
    start = time.monotonic()
    try:
        rung.answer = probe()
    except (Unreachable, OSError) as problem:
        rung.failure = str(problem)
    else:
        rung.samples_s.append(time.monotonic() - start)


def _measure_connection(target: HttpTarget, rungs: dict[str, Rung], limit_s: float) -> None:
    """Connects and makes a request that no MCP code sees, and adds a sample to each rung on the way."""
    parts = urlsplit(target.url)
    host, is_tls = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    codes = ["tcp", *(["tls"] if is_tls else []), "http"]
    for code in codes:
        rungs.setdefault(code, Rung(code=code))
    if any(rungs[code].failure for code in codes) or sum(rungs["http"].samples_s) > RUNG_LIMIT_S:
        return
    code = "tcp"
    with ExitStack() as stack:
        try:
            # The name is resolved before, since a call on an open connection doesn't resolve it.
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            plain = stack.enter_context(socket.socket(family, kind, protocol))
            plain.settimeout(CONNECT_LIMIT_S)
            start = time.monotonic()
            plain.connect(address)
            rungs["tcp"].samples_s.append(time.monotonic() - start)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream: socket.socket = plain
            if is_tls:
                code, start = "tls", time.monotonic()
                stream = stack.enter_context(_tls_context(target.ca).wrap_socket(plain, server_hostname=host))
                rungs["tls"].samples_s.append(time.monotonic() - start)
            code = "http"
            name = f"[{host}]" if ":" in host else host
            request = f"GET {PATH} HTTP/1.1\r\nhost: {name}:{port}\r\naccept: */*\r\nconnection: close\r\n\r\n"
            start = time.monotonic()
            stream.settimeout(limit_s)
            stream.sendall(request.encode("ascii", "replace"))
            head = stream.recv(4096)
            spent_s = time.monotonic() - start
            if not head.startswith(b"HTTP/"):
                raise OSError("no HTTP response")
            rungs["http"].samples_s.append(spent_s)
            rungs["http"].answer = head.split(b"\r\n", 1)[0].decode("ascii", "replace").split(" ", 1)[-1][:40]
        except OSError as problem:
            rungs[code].failure = str(problem)


def _tls_context(extra_root: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if extra_root is not None:
        context.load_verify_locations(cadata=extra_root)
    context.set_alpn_protocols(["http/1.1"])
    return context
