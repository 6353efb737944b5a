"""Catalogue of the factors that can be changed on a live target, and of the findings that their effects prove.

Each variant is the base case with one factor changed. Variants that don't apply to a target (IPv6 where its name has
one address, an event stream over stdio) are left out. The functions are pure, except for looking up a host's addresses.
"""

from __future__ import annotations

import ipaddress
import socket
import statistics
import time
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, replace
from typing import Any, Protocol
from urllib.parse import urlsplit

from mcpace import _core
from mcpace.lab.load.check import Checked
from mcpace.lab.load.plan import Closed, HttpTarget, LoadPlan, Operation
from mcpace.lab.load.settings import STATELESS_SINCE
from mcpace.report.model.factors import Factor
from mcpace.report.model.ladder import Ladder

AT_ONCE = 10
LARGE_BYTES = 64 * 1024
LATEST, EARLIER = "2026-07-28", "2025-06-18"
DELAYED_S = 0.02
"""Smallest saving that proves delayed acknowledgements: half of Linux's delay of 40 ms."""
FELT_S = 0.001
"""Smallest saving that proves an unreachable address is tried first."""


class Caller(Protocol):
    """Creates mcpace's own clients for the target."""

    @property
    def has_automatic_consent(self) -> bool:
        """Whether OAuth consent is given automatically."""

    @property
    def is_profile(self) -> bool:
        """Whether the target is one of mcpace's own profiles."""

    def connect_client(
        self, *, standalone_get: bool = False, oauth: bool = False, address: str | None = None
    ) -> _core.Client:
        """Returns a connected client. ``oauth``: it authorizes itself; ``address``: it connects to this URL."""


@dataclass(frozen=True)
class Variant:
    """The base case with one factor changed."""

    code: str
    detail: str = ""
    plan: LoadPlan | None = None
    """Plan of the load engine; ``None`` where ``measure`` makes the calls."""
    measure: Callable[[float], float] | None = None
    """Takes a slice's length and returns the median of its calls, in seconds."""
    base: Callable[[float], float] | None = None
    """The variant's own base case, measured like ``measure``."""


def applicable_variants(
    base: LoadPlan, checked: Checked, caller: Caller, fixed_arguments: Set[str] = frozenset()
) -> list[Variant]:
    """All variants that apply to a target, the most useful first. ``fixed_arguments`` must not be changed."""
    found = list(_over_http(base, base.target)) if isinstance(base.target, HttpTarget) else []
    found += _argument_variants(base, checked, fixed_arguments, is_ours=caller.is_profile)
    found += [Variant("listing", plan=_with_listing(base))]
    found += _session_variants(base)
    found += _revision_variants(base)
    if isinstance(base.target, HttpTarget):
        found += _address_variants(base.target, caller)
        found += _standalone_stream(base, caller)
        found += _authorization_variants(caller)
    return found


def largest_effect(code: str, ladder: Ladder) -> float | None:
    """The most seconds of a call that a factor can change, by the ladder; ``None`` where the ladder sets no limit.

    The requests of the ladder that reach no tool pass the same transport as a call, so they contain what a change of
    the transport could save.
    """
    medians = {rung.code: rung.median_s for rung in ladder.rungs if rung.median_s is not None}
    if not {"ping", "list", "unknown-tool"} <= set(medians):
        return None
    without_tool_s = max(medians["ping"], medians["unknown-tool"])
    match code:
        case "quick-ack":
            return without_tool_s if max(without_tool_s, medians["list"]) < DELAYED_S else None
        case "connection" if "http" in medians:
            return medians.get("tcp", 0.0) + medians.get("tls", 0.0) + max(medians["http"], without_tool_s)
        case "json" | "sse" | "no-session":
            return without_tool_s
        case "listing":
            return medians["list"]
        case _:
            return None


def proven_finding(factor: Factor) -> str | None:
    """Code of the finding that an effect proves; ``None`` where it proves none."""
    if factor.base_s is None or factor.changed_s is None or factor.ratio is None:
        return None
    saved_s = factor.base_s - factor.changed_s
    match factor.code:
        case "quick-ack" if factor.verdict == "faster" and saved_s >= DELAYED_S:
            return "delayed-ack"
        case "address" if factor.verdict == "faster" and saved_s >= FELT_S:
            return "address-fallback"
        case _:
            return None


def _over_http(base: LoadPlan, target: HttpTarget) -> Iterator[Variant]:
    yield Variant("quick-ack", plan=replace(base, quick_ack=True))
    yield Variant("connection", plan=replace(base, new_connections=True))
    yield Variant("json", plan=replace(base, accept="json"))
    yield Variant("sse", plan=replace(base, accept="sse"))
    # Over stdio each user has its own process, so concurrency would measure something else.
    yield Variant("concurrency", f"{AT_ONCE} at once", replace(base, model=Closed(vus=AT_ONCE)))


def _address_variants(target: HttpTarget, caller: Caller) -> Iterator[Variant]:
    """Variants for the other addresses of the target's name. Only connecting shows which address is tried first."""
    for address in other_addresses(target.url):
        yield Variant(
            "address",
            address,
            measure=_time_connect(caller, address=_with_address(target.url, address)),
            base=_time_connect(caller),
        )


def other_addresses(url: str) -> list[str]:
    """One address of each family, if the URL's name has both. Empty for https, which checks names."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        return []
    try:
        ipaddress.ip_address(parts.hostname)
    except ValueError:
        pass
    else:
        return []
    families: dict[int, str] = {}
    try:
        for family, _, _, _, address in socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_STREAM):
            families.setdefault(family, str(address[0]))
    except OSError:
        return []
    return list(families.values()) if len(families) == 2 else []


def _with_address(url: str, address: str) -> str:
    parts = urlsplit(url)
    host = f"[{address}]" if ":" in address else address
    port = f":{parts.port}" if parts.port else ""
    return parts._replace(netloc=f"{host}{port}").geturl()


def _argument_variants(
    base: LoadPlan, checked: Checked, fixed_arguments: Set[str], *, is_ours: bool
) -> Iterator[Variant]:
    operation = base.operations[0]
    tool = checked.tools.get(operation.tool or "", {})
    if (tool.get("annotations") or {}).get("readOnlyHint") is not True and not is_ours:
        return  # a tool that isn't read-only may get only the user's arguments
    schema = tool.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, own in (properties if isinstance(properties, dict) else {}).items():
        if name in fixed_arguments:
            continue  # the user's own values must not be changed
        if isinstance(own, dict) and own.get("type") == "string" and not {"enum", "format", "pattern"} & set(own):
            if isinstance(own.get("maxLength"), int) and own["maxLength"] < LARGE_BYTES:
                continue
            large = replace(operation, arguments={**(operation.arguments or {}), name: "x" * LARGE_BYTES})
            yield Variant("argument", f"64 KiB in {name}", replace(base, operations=[large]))
            return


def _with_listing(base: LoadPlan) -> LoadPlan:
    listing = Operation(name="tools/list", kind="list")
    return replace(base, operations=[listing, base.operations[0]], order="sequence")


def _session_variants(base: LoadPlan) -> Iterator[Variant]:
    if base.session == "user":
        yield Variant("session-per-call", plan=replace(base, session="call"))
        if isinstance(base.target, HttpTarget):
            yield Variant("no-session", plan=replace(base, session="none"))


def _revision_variants(base: LoadPlan) -> Iterator[Variant]:
    other = EARLIER if base.revision >= STATELESS_SINCE else LATEST
    session = "none" if other >= STATELESS_SINCE else "user"
    yield Variant("revision", other, replace(base, revision=other, session=session))  # type: ignore[arg-type]


def _standalone_stream(base: LoadPlan, caller: Caller) -> Iterator[Variant]:
    """The server's standalone stream. Only the instrumented client opens it, so that client makes the base case too."""
    if base.revision >= STATELESS_SINCE:
        return
    operation = base.operations[0]

    def measure_calls(standalone_get: bool) -> Callable[[float], float]:
        client: list[_core.Client] = []

        def measure(length_s: float) -> float:
            if not client:
                client.append(caller.connect_client(standalone_get=standalone_get))
            return _median_call(client[0], operation, length_s)

        return measure

    yield Variant("standalone-get", measure=measure_calls(True), base=measure_calls(False))


def _authorization_variants(caller: Caller) -> Iterator[Variant]:
    """Cost of authorization in a connect: discovery, registration, consent."""

    if caller.has_automatic_consent:
        yield Variant("oauth", "connecting", measure=_time_connect(caller, oauth=True), base=_time_connect(caller))


def _time_connect(caller: Caller, **how: Any) -> Callable[[float], float]:
    return lambda length_s: _median_of(lambda: caller.connect_client(**how).disconnect(), length_s)


def _median_call(client: _core.Client, operation: Operation, length_s: float) -> float:
    arguments: dict[str, Any] = operation.arguments or {}
    return _median_of(lambda: client.call_tool(operation.tool or "", arguments), length_s)


def _median_of(act: Callable[[], object], length_s: float) -> float:
    until = time.monotonic() + length_s
    durations: list[float] = []
    while not durations or time.monotonic() < until:
        start = time.monotonic()
        act()
        durations.append(time.monotonic() - start)
    return statistics.median(durations)
