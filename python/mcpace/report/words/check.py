"""The words of a check of a host's configuration: the verdict, and a remark on each server.

Design constraint: a remark names only what was measured: the part of the start that takes most of it, or the failure in
the server's own words.
"""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from mcpace.report.model.run import Case, Run
from mcpace.report.model.start import FASTER, LEAST_SESSIONS, StartFacts, TriedStart
from mcpace.report.model.tokens import ToolTokens
from mcpace.report.words.quantities import clean, count, duration, join_words, share

PARTS = {
    "spawn": "spawn",
    "runner": "runner",
    "resolve": "resolve",
    "fetch": "download",
    "install": "install",
    "interpreter": "interp.",
    "imports": "imports",
    "set-up": "set-up",
    "initialize": "init",
    "list": "list",
}
"""Headings of the parts of a start, in the order in which they occur."""
MOST_UNUSED = 3
TOOL_FILTERS = {"Codex": "enabled_tools = [{}]", "Gemini CLI": '"includeTools": [{}]'}
"""For each host: the member of a server's entry that names the only tools that the host takes."""
SWITCHES = {"Codex": "enabled = false", "Gemini CLI": "its name in mcp.excluded"}
"""For each host: the member that switches a server off."""
MOST_CALLED = 12
RUNNER_PARTS = ("runner", "resolve", "fetch", "install")
"""Parts in which a package runner works."""
LONGEST_NAME = 60
SMALL = 0.03
"""Parts that are below this share of every start are shown together."""
NAMED_PACKAGES = 2
MOST_TOOLS = 12
OTHER = "other"
SHARE = 0.3
"""A remark names a part that takes at least this share of the start."""
COMPUTING = 0.7
"""A start is computing where the processor time is at least this share of it."""
QUICK_S = 0.3
"""A start below this time needs no remark."""


@dataclass(frozen=True)
class Server:
    """One server of a check, and its cases."""

    name: str
    connect: Case
    listing: Case | None
    call: Case | None

    @property
    def has_failed(self) -> bool:
        """Whether no start was successful."""
        return not self.connect.trials_s

    @property
    def tools(self) -> int | None:
        """Number of its tools."""
        return self.listing.listing_tools if self.listing is not None else None

    @property
    def tokens(self) -> int | None:
        """Tokens of its tools."""
        return self.listing.listing_tokens if self.listing is not None else None

    @property
    def context_tokens(self) -> int:
        """Tokens of its tools and its instructions, which hosts give to the model at the start."""
        other = self.listing.context_tokens if self.listing is not None else None
        return (self.tokens or 0) + (other.instructions if other is not None else 0)

    @property
    def start(self) -> StartFacts:
        """Facts of its starts."""
        return self.connect.start or StartFacts()


def servers(run: Run) -> list[Server]:
    """The servers: those that failed first, then the slowest start."""
    cases: dict[str, dict[str, Case]] = {}
    for case in run.cases:
        cases.setdefault(case.target, {})[case.operation] = case
    found = [
        Server(clean(name, LONGEST_NAME), own["connect"], own.get("list"), own.get("call"))
        for name, own in cases.items()
        if "connect" in own
    ]
    return sorted(found, key=lambda server: (not server.has_failed, -_start_s(server)))


def sentences(run: Run) -> list[str]:
    """``6 servers: a new session waits 1.7 s for them, and their tools take 16.9k tokens of each context.``"""
    found = servers(run)
    failed = [server for server in found if server.has_failed]
    started = [server for server in found if not server.has_failed]
    if not started:
        return [f"None of {count(len(found), 'server')} could be started." if found else "No server was started."]
    one = len(started) == 1
    waited = run.check.together_s if run.check is not None else []
    facts = []
    if waited:
        facts.append(f"a new session waits {duration(statistics.median(waited))} for {'it' if one else 'them'}")
    counted = [server.tokens for server in started if server.tokens is not None]
    if counted:
        facts.append(f"{'its' if one else 'their'} tools take {token_words(sum(counted))} tokens of each context")
    told = [": ".join([count(len(started), "server"), *([", and ".join(facts)] if facts else [])]) + "."]
    if failed:
        names = [server.name for server in failed[:4]] + ([f"{len(failed) - 4} more"] if len(failed) > 4 else [])
        told.append(f"{count(len(failed), 'server')} failed: {join_words(names)}.")
    return told + advised_words(run)


def advised_words(run: Run) -> list[str]:
    """``Tried with all advice below: a session waits 3.1 s (8.6 times faster), and the tools take …``"""
    check = run.check
    if check is None or check.advised is None or not check.advised.ready_s or not check.together_s:
        return []
    before_s, after_s = statistics.median(check.together_s), statistics.median(check.advised.ready_s)
    facts = []
    if after_s < FASTER * before_s:
        facts.append(f"a new session waits {duration(after_s)} ({before_s / after_s:.1f} times faster)")
    total, saved = sum(server.tokens or 0 for server in servers(run)), sum(one.tokens for one in unused(run))
    if saved:
        facts.append(f"the tools take {token_words(total - saved)} tokens ({share(saved, total)} less)")
    return [f"Tried with all advice below: {', and '.join(facts)}."] if facts else []


def token_words(tokens: int) -> str:
    """``580``, ``5,080``, ``16.9k``."""
    return f"{tokens / 1000:.1f}k" if tokens >= 10_000 else f"{tokens:,}"


def remark(server: Server) -> str:
    """The parts that take the start, or the reason why the server failed."""
    if server.has_failed:
        return clean(server.connect.error or "not started", 300)
    facts, parts = server.start, part_medians(server, together=False)
    total_s = sum(parts.values())
    told = [clean(server.connect.error, 200)] if server.connect.error else []
    if server.call is not None and server.call.error:
        told.append(clean(server.call.error, 160))
    if not parts or total_s < QUICK_S:
        return "; ".join(told)
    runner_s = sum(parts.get(code, 0.0) for code in RUNNER_PARTS)
    if runner_s >= SHARE * total_s:
        resolve_s = parts.get("resolve", 0.0)
        asking = f" (it asks the registry for {duration(resolve_s)})" if resolve_s >= SHARE * runner_s else ""
        told.append(f"{duration(runner_s)} in {clean(facts.runner, 20)} before the server's own program runs{asking}")
    if parts.get("imports", 0.0) >= SHARE * total_s:
        packages = [clean(package.name, 30) for package in facts.imports[:NAMED_PACKAGES]]
        told.append(f"{duration(parts['imports'])} in Python imports ({', '.join(packages)})")
    elif parts.get("set-up", 0.0) >= SHARE * total_s:
        program = clean(facts.program, 20) or "the server"
        is_computing = facts.processor_s is not None and facts.processor_s >= COMPUTING * total_s
        doing = f"of {program}, which computes," if is_computing else f"of {program}"
        told.append(f"{duration(parts['set-up'])} {doing} until the first answer")
    return "; ".join(told)


def part_medians(server: Server, *, together: bool, cold: bool = False) -> dict[str, float]:
    """The parts of the typical start, in seconds: the one with the median time, so that its parts add up to it."""
    starts = sorted(
        (one for one in server.start.starts if (one.together, one.cold) == (together, cold) and one.parts),
        key=lambda one: one.total_s,
    )
    if not starts:
        return {}
    return {part.code: part.seconds for part in starts[(len(starts) - 1) // 2].parts}


@dataclass(frozen=True)
class LastServer:
    """The server for which a session waits last, if all servers start at once."""

    name: str
    ready_s: float
    parts: dict[str, float]
    next_name: str
    next_s: float
    """The time until the server before it is ready: a session without the last server waits for this one."""


def last_server(run: Run) -> LastServer | None:
    """The critical path of a session's start; ``None`` with fewer than two servers."""
    ready = sorted((server for server in servers(run) if _ready_s(server)), key=_ready_s)
    if len(ready) < 2:
        return None
    before, last = ready[-2:]
    return LastServer(last.name, _ready_s(last), part_medians(last, together=True), before.name, _ready_s(before))


def _last_words(run: Run) -> list[str]:
    found = last_server(run)
    if found is None:
        return []
    longest = sorted(found.parts, key=lambda code: -found.parts[code])[:2]
    parts = join_words([f"{PARTS[code]} {duration(found.parts[code])}" for code in longest])
    return [
        f"All started at once, {found.name} is ready last, after {duration(found.ready_s)} ({parts}). Without it, a "
        f"session waits {duration(found.next_s)}, for {found.next_name}."
    ]


def limited_words(run: Run) -> list[str]:
    """The effect of fewer servers at the same time, which was tried."""
    limited, waited = (run.check.limited, run.check.together_s) if run.check is not None else (None, [])
    if limited is None or not limited.ready_s or not waited:
        return []
    ready = sorted(ready_s for server in servers(run) if (ready_s := _ready_s(server)))
    if len(ready) != len(limited.ready_s):
        return []
    half = len(ready) // 2
    all_s, half_s = limited.ready_s[-1], limited.ready_s[half - 1]
    if all_s >= FASTER * statistics.median(waited) and half_s >= FASTER * ready[half - 1]:
        return []
    return [
        f"Tried: {limited.at_once} servers at a time. All are ready after {duration(all_s)} instead of "
        f"{duration(statistics.median(waited))}, and half of them after {duration(half_s)} instead of "
        f"{duration(ready[half - 1])}."
    ]


def _ready_s(server: Server) -> float:
    """Time until the server is ready where all start at once; 0 where that is not known."""
    totals = server.start.totals_s(together=True)
    return statistics.median(totals) if totals else 0.0


def largest_tools(run: Run) -> list[tuple[str, ToolTokens]]:
    """The tools that take most tokens, each with its server."""
    tools = [
        (server.name, tool)
        for server in servers(run)
        if server.listing is not None
        for tool in server.listing.tools or ()
    ]
    return sorted(tools, key=lambda one: -one[1].tokens)[:MOST_TOOLS]


def notes(run: Run) -> list[str]:
    """Sentences below the table: what the figures mean, and what was tried."""
    told = [*_last_words(run), *limited_words(run)]
    encoding = run.options.get("encoding")
    if isinstance(encoding, str) and any(server.tokens is not None for server in servers(run)):
        told.append(
            f"Tokens are those of names, descriptions and input schemas as JSON in the encoding {clean(encoding, 20)}, "
            "exact for OpenAI's models; other models count differently, and hosts add text of their own."
        )
    contexts = [server.listing.context_tokens for server in servers(run) if server.listing is not None]
    instructions = sum(one.instructions for one in contexts if one is not None)
    if instructions:
        told.append(f"Instructions of the servers take {token_words(instructions)} tokens more.")
    off = run.check.switched_off if run.check is not None else []
    if off:
        told.append(f"Switched off in the configuration: {join_words([clean(name, 40) for name in off])}.")
    if not any(server.start.use is not None and server.start.use.is_enough for server in servers(run)):
        told.append(
            "mcpace wrap CONFIG records the sessions of your host. After "
            f"{LEAST_SESSIONS} sessions, mcpace check names the servers and tools that nobody calls."
        )
    return told


@dataclass(frozen=True)
class Unused:
    """Tools of a server that no recorded session called."""

    server: str
    sessions: int
    since: str
    tools: list[ToolTokens]
    """The tools that were not called."""
    all_tools: int
    advice: str

    @property
    def tokens(self) -> int:
        """Tokens that a host saves without these tools."""
        return sum(tool.tokens for tool in self.tools)


def unused(run: Run) -> list[Unused]:
    """Servers and tools that no recorded session called, those with most tokens first."""
    found = []
    for server in servers(run):
        use, tools = server.start.use, (server.listing.tools if server.listing is not None else None) or []
        left = [tool for tool in tools if use is not None and tool.name not in use.calls]
        if use is not None and use.is_enough and left:
            called = [tool.name for tool in tools if tool.name in use.calls]
            advice = _unused_advice(
                server.start.host, left, called, is_whole=use.shows_unused_server(tool.name for tool in tools)
            )
            found.append(Unused(server.name, use.sessions, use.since, left, len(tools), advice))
    return sorted(found, key=lambda one: -one.tokens)


def _unused_advice(host: str, left: Sequence[ToolTokens], called: Sequence[str], *, is_whole: bool) -> str:
    if is_whole:
        switch = f", with {SWITCHES[host]}" if host in SWITCHES else ""
        return f"no tool was called: switch the server off{switch}"
    if host in TOOL_FILTERS and 0 < len(called) <= MOST_CALLED:
        kept = TOOL_FILTERS[host].format(", ".join(f'"{clean(name, 60)}"' for name in called))
        return f"keep the tools that were called: {kept}"
    names = [clean(tool.name, 40) for tool in sorted(left, key=lambda tool: -tool.tokens)]
    shown = ", ".join([*names[:MOST_UNUSED], *(["…"] if len(names) > MOST_UNUSED else [])])
    return f"not called: {shown}; leave them out with the tool list of your host"


def cold_notes(run: Run) -> list[str]:
    """The failures of starts with empty caches."""
    failures = [(server.name, clean(server.start.cold_failure, 200)) for server in servers(run)]
    return [f"{name}: {failure}" for name, failure in failures if failure]


@dataclass(frozen=True)
class Gain:
    """Another way of starting a server, which was tried and is faster."""

    server: str
    before_s: float
    after_s: float
    advice: str


def gains(run: Run, code: str) -> list[Gain]:
    """Starts of one kind that were tried and are faster, the largest gain first. Those with compiled code are compared
    with the start without the package runner where that was tried.
    """
    found = []
    for server in servers(run):
        tried: dict[str, TriedStart] = {one.code: one for one in server.start.tried if one.seconds}
        own, installed = tried.get(code), tried.get("installed")
        if own is None:
            continue
        has_base = installed is not None and own is not installed
        before_s = statistics.median(installed.seconds) if installed and has_base else _start_total_s(server)
        after_s = statistics.median(own.seconds)
        if 0 < after_s < FASTER * before_s:
            advice = _installed_words(own) if code == "installed" else _variable_words(own)
            found.append(Gain(server.name, before_s, after_s, advice))
    return sorted(found, key=lambda gain: gain.after_s - gain.before_s)


def _variable_words(tried: TriedStart) -> str:
    """The variables as a member of a server's entry in a configuration."""
    variables = ", ".join(f'"{clean(name, 40)}": "{clean(value, 80)}"' for name, value in tried.environment.items())
    return f'"env": {{{variables}}}'


def _installed_words(tried: TriedStart) -> str:
    try:
        words = shlex.split(tried.command)
    except ValueError:
        words = [tried.command]
    script = next((word for word in words[1:2] if "/" in word), words[0] if words else "")
    name = clean(script.rsplit("/", 1)[-1], 50)
    return f"{clean(tried.install, 80)}; command: {name}" if tried.install else f"command: {name}"


def merged_parts(shown: Sequence[dict[str, float]]) -> tuple[list[str], list[dict[str, float]]]:
    """The parts of several starts, small ones merged as ``other``; the codes in order, and each start's parts."""
    totals = [sum(parts.values()) for parts in shown]
    large = [
        code
        for code in PARTS
        if any(parts.get(code, 0.0) > SMALL * total for parts, total in zip(shown, totals, strict=True))
    ]
    merged = [
        {code: parts[code] for code in large if code in parts}
        | {OTHER: sum(seconds for code, seconds in parts.items() if code not in large)}
        for parts in shown
    ]
    return [*large, OTHER], merged


def _start_s(server: Server) -> float:
    return server.connect.summary.median_s if server.connect.summary is not None else 0.0


def _start_total_s(server: Server) -> float:
    totals = server.start.totals_s(together=False)
    return statistics.median(totals) if totals else 0.0
