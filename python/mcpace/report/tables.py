"""Tables for both the terminal and the page: a session's waits, a recorded client's requests, compared listings.

A cell is readable text that contains figures of the run.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from mcpace.report.answer_tables import answer_tables
from mcpace.report.gateway_tables import gateway_tables
from mcpace.report.groups import targets
from mcpace.report.model.drift import Drift
from mcpace.report.model.ladder import Ladder
from mcpace.report.model.processes import HostProcesses
from mcpace.report.model.run import Case, Run
from mcpace.report.model.tokens import ContextTokens
from mcpace.report.replica_tables import replica_tables
from mcpace.report.result_tables import compared_result_tables, recorded_result_tables
from mcpace.report.table import Table
from mcpace.report.words import check, ladder, limits, processes
from mcpace.report.words import drift as drift_words
from mcpace.report.words.quantities import NO_BREAK, clean, count, duration, share, size
from mcpace.report.words.start import short_name
from mcpace.report.words.tokens import ENCODING, result_words
from mcpace.report.worker_tables import worker_tables

BYTES_PER_TOKEN = 4
"""Assumed bytes a token. Tokenizers differ, and schemas are mostly ASCII, so the report calls the number an
estimate."""
MOST_METHODS = 40
MOST_GAINS = 5
GAIN_TITLES = {
    "installed": "Tried: the installed program, without its package runner",
    "cached-code": "Tried: compiled code that the interpreter keeps for the next start",
}
"""For each kind of start that is tried, the title of its table, in the order in which they add up."""
MOST_SIZES = 16
MOST_PROCESSES = 200
STARTS = (
    (True, False, "Starts, all at once"),
    (False, False, "Starts, one by one"),
    (False, True, "Starts with empty caches"),
)
"""Kinds of starts of a check: whether all servers start together, whether caches are empty, and the table's title."""


def tables(run: Run, *, is_page: bool = False) -> list[Table]:
    """All tables of a run. A terminal shows the parts of starts and the largest tools only where that was asked for."""
    if run.kind == "recording":
        return list(_method_table(run))
    if run.kind in ("query", "recordings"):
        return list(answer_tables(run, is_page=is_page))
    if run.kind == "check":
        is_whole = is_page or bool(run.options.get("waterfall"))
        details = [*_parts_tables(run), *_context_table(run), *_tools_table(run)] if is_whole else []
        tried = [table for code in GAIN_TITLES for table in _gains_table(run, code, is_whole=is_whole)]
        advice = [*tried, *_unused_table(run)]
        return [_servers_table(run), *advice, *details] if run.cases else []
    if run.processes is not None:
        return [_process_table(run.processes)] if run.processes.servers else []
    if run.replicas is not None:
        return list(replica_tables(run.replicas))
    if run.gateway is not None:
        listings = [_listing_table(one) for one in run.comparison.drifts if one.changes] if run.comparison else []
        return [*gateway_tables(run.gateway), *listings]
    if run.comparison is not None:
        return [*(_listing_table(one) for one in run.comparison.drifts), *compared_result_tables(run.comparison)]
    if run.kind == "limits":
        return [_limits_table(run)]
    if run.kind == "load":
        return list(worker_tables(run))
    if run.ladder is not None:
        return [_ladder_table(run, run.ladder)]
    return [table for target in targets(run) if (table := _session_table(run, target)) is not None]


def listing_words(case: Case) -> str:
    """``The listing of 13 tools is 7.7 kB of JSON, about 1,900 tokens of a model's context (an estimate).``"""
    if case.listing_bytes is None:
        return ""
    tools = f" of {count(case.listing_tools, 'tool')}" if case.listing_tools is not None else ""
    if case.listing_tokens is not None:
        return (
            f"The listing{tools} is {size(case.listing_bytes)} of JSON; hosts give {case.listing_tokens:,} tokens of "
            f"it to the model (names, descriptions and input schemas, counted in the encoding {ENCODING})."
        )
    tokens = f"{tokens_of(case.listing_bytes):,}"
    return (
        f"The listing{tools} is {size(case.listing_bytes)} of JSON, about {tokens} tokens of a model's context (an "
        f"estimate, {BYTES_PER_TOKEN} bytes a token)."
    )


def tokens_of(size_bytes: int) -> int:
    """An estimate of a text's tokens, to two digits."""
    return int(float(f"{size_bytes / BYTES_PER_TOKEN:.2g}"))


def _servers_table(run: Run) -> Table:
    rows: list[tuple[str, ...]] = [
        (
            clean(server.name, 28),
            _later_median(server.connect) if not server.has_failed else "failed",
            _first_median(server.listing),
            "failed" if server.call is not None and server.call.error else _first_median(server.call),
            "–" if server.tools is None else f"{server.tools:,}",
            "–" if server.tokens is None else f"{server.tokens:,}",
            check.remark(server),
        )
        for server in check.servers(run)
    ]
    columns = ("server", "start", "first list", "a call", "tools", "tokens", "")
    bars = _bars([server.tokens or 0 for server in check.servers(run)])
    return Table("Servers, worst first", columns, rows, "", check.notes(run), True, columns.index("tokens"), bars)


def _bars(values: list[int]) -> list[float]:
    return [round(value / max(*values, 1), 4) for value in values]


def _parts_tables(run: Run) -> Iterator[Table]:
    for together, cold, title in STARTS:
        shown = [
            (server, parts)
            for server in check.servers(run)
            if (parts := check.part_medians(server, together=together, cold=cold))
        ]
        shown.sort(key=lambda one: -sum(one[1].values()))
        codes, merged = check.merged_parts([parts for _, parts in shown])
        rows = [
            (
                clean(server.name, 28),
                duration(sum(parts.values())),
                *(duration(parts[code]) if parts.get(code) else "–" for code in codes),
                *(() if together or cold else _usage_cells(server)),
            )
            for (server, _), parts in zip(shown, merged, strict=True)
        ]
        notes = check.cold_notes(run) if cold else []
        if rows or notes:
            usage = () if together or cold else ("CPU", "memory")
            columns = ("server", "in all", *(check.PARTS.get(code, code) for code in codes), *usage)
            yield Table(title, columns, rows, notes=notes)


def _usage_cells(server: check.Server) -> tuple[str, str]:
    facts = server.start
    return (
        duration(facts.processor_s) if facts.processor_s is not None else "–",
        f"{facts.rss_bytes / 1e6:,.0f}{NO_BREAK}MB" if facts.rss_bytes is not None else "–",
    )


def _gains_table(run: Run, code: str, *, is_whole: bool) -> Iterator[Table]:
    gains = check.gains(run, code)
    rows: list[tuple[str, ...]] = [
        (clean(gain.server, 28), duration(gain.before_s), duration(gain.after_s), gain.advice)
        for gain in (gains if is_whole else gains[:MOST_GAINS])
    ]
    if rows:
        more = len(gains) - len(rows)
        before_s, after_s = sum(gain.before_s for gain in gains), sum(gain.after_s for gain in gains)
        before = "now" if code == "installed" else "before"
        notes = [f"These {len(gains)} starts, one by one: {duration(before_s)} {before}, {duration(after_s)} as tried."]
        notes = [*notes, f"{more} more with --waterfall."] if more else notes if len(gains) > 1 else []
        columns = ("server", before, "tried", "")
        yield Table(GAIN_TITLES[code], columns, rows, notes=notes, has_remarks=True)


def _unused_table(run: Run) -> Iterator[Table]:
    found = check.unused(run)
    rows: list[tuple[str, ...]] = [
        (
            clean(one.server, 28),
            f"{one.sessions:,}",
            one.since,
            f"{len(one.tools):,}{NO_BREAK}of{NO_BREAK}{one.all_tools:,}",
            f"{one.tokens:,}",
            one.advice,
        )
        for one in found
    ]
    if rows:
        total = sum(server.tokens or 0 for server in check.servers(run))
        saved = sum(one.tokens for one in found)
        notes = [f"Without them, the listings take {saved:,} of {total:,} tokens less ({share(saved, total)})."]
        columns = ("server", "sessions", "since", "tools", "tokens", "")
        yield Table("Not called in your recordings", columns, rows, notes=notes, has_remarks=True)


def _context_table(run: Run) -> Iterator[Table]:
    """Tokens of each server by kind, the largest first."""
    found = [server for server in check.servers(run) if server.tokens is not None]
    found.sort(key=lambda server: -server.context_tokens)
    total = sum(server.context_tokens for server in found)
    rows: list[tuple[str, ...]] = []
    for server in found:
        other = (server.listing.context_tokens if server.listing is not None else None) or ContextTokens()
        shown = (server.tokens or 0, other.instructions, other.prompts, other.resources)
        cells = [f"{value:,}" if value else "–" for value in shown]
        rows.append((clean(server.name, 28), share(server.context_tokens, total), *cells))
    if rows:
        columns = ("server", "share", "tools", "instructions", "prompts", "resources")
        notes = ["The share is that of tools and instructions, which hosts give to the model at the start."]
        bars = _bars([server.context_tokens for server in found])
        yield Table("What takes the context, in tokens", columns, rows, notes=notes, bar_column=1, bars=bars)


def _tools_table(run: Run) -> Iterator[Table]:
    tools = check.largest_tools(run)
    rows: list[tuple[str, ...]] = [
        (
            clean(f"{server} {tool.name}", 60),
            f"{tool.tokens:,}",
            f"{tool.description:,}",
            f"{tool.input_schema:,}",
            f"{tool.output_schema:,}" if tool.output_schema else "–",
            size(tool.bytes),
        )
        for server, tool in tools
    ]
    if rows:
        columns = ("tool", "tokens", "text", "input", "output", "JSON")
        yield Table("Largest tools", columns, rows, bar_column=1, bars=_bars([tool.tokens for _, tool in tools]))


def _session_table(run: Run, target: str) -> Table | None:
    """The table of a session's waits: its start, the first list and call, and the later ones."""
    cases = [case for case in run.cases if case.target == target]
    if not any(case.first_s for case in cases) or run.kind == "explain":
        return None
    starts = any(case.starts_process for case in cases)
    columns = ("start-up" if starts else "connect", "first list", "later lists", "first call", "later calls")
    rows: list[tuple[str, ...]] = []
    for label in dict.fromkeys(case.subject.label() for case in cases):
        own = {case.operation: case for case in cases if case.subject.label() == label}
        connect, listing, call = own.get("connect"), own.get("list"), own.get("call")
        cells = (
            _later_median(connect),
            _first_median(listing),
            _later_median(listing),
            _first_median(call),
            _later_median(call),
        )
        rows.append((clean(label, 28), *cells))
    notes = [words for case in cases if (words := listing_words(case))][:1]
    notes += [f"{words}." for case in cases if (words := result_words(case))][:1]
    return Table("What a session waits for", ("medians", *columns), rows, short_name(target), notes)


def _process_table(made: HostProcesses) -> Table:
    """The servers of all hosts: those of one host stand together."""
    codes = {pid: finding.code for finding in made.findings for pid in finding.pids}
    rows: list[tuple[str, ...]] = []
    for one in made.servers[:MOST_PROCESSES]:
        name = processes.server_name(one)
        memory = "–" if one.has_ended else size(one.memory_bytes)
        host = f"{one.parent} {processes.program_words(one.parent_command)}".strip()
        age = processes.age_words(one.age_s)
        rows.append((name, str(one.pid), host, age, memory, codes.get(one.pid, "")))
    columns = ("server", "pid", "started by", "age", "memory", "finding")
    more = len(made.servers) - len(rows)
    return Table("Servers over stdio", columns, rows, notes=[f"{count(more, 'more server')}."] if more else [])


def _listing_table(drift: Drift) -> Table:
    """The sizes of the listing and of the tools that changed, and the changes in words."""
    is_counted = any(one.base_tokens is not None or one.now_tokens is not None for one in drift.sizes)
    rows: list[tuple[str, ...]] = []
    for one in drift.sizes[:MOST_SIZES]:
        sizes = ["–" if value is None else size(value) for value in (one.base_bytes, one.now_bytes)]
        tokens = ["–" if value is None else f"{value:,}" for value in (one.base_tokens, one.now_tokens)]
        rows.append((clean(one.name, 40) or "all tools", *sizes, *(tokens if is_counted else ())))
    columns = ("first", "second", *(("first tokens", "second tokens") if is_counted else ()))
    notes = [f"{len(drift.sizes) - MOST_SIZES} more tools."] if len(drift.sizes) > MOST_SIZES else []
    return Table("Listing", ("", *columns), rows, short_name(drift.target), [*notes, *drift_words.notes(drift)])


def _ladder_table(run: Run, made: Ladder) -> Table:
    added = {layer.code: layer.seconds for layer in made.layers if layer.code in ladder.LAYERS}
    rows: list[tuple[str, ...]] = []
    for rung in made.rungs:
        layer = ladder.LAYER_OF.get(rung.code, "")
        median = "–" if rung.median_s is None else duration(rung.median_s)
        rows.append(
            (
                ladder.rung_words(rung),
                median,
                f"{len(rung.samples_s):,}",
                duration(added[layer]) if layer in added else "",
                ladder.LAYERS[layer].name if layer in added else "",
            )
        )
    where = short_name(run.cases[0].target) if run.cases else ""
    return Table(
        "Where a call's time is", ("request", "median", "requests", "adds", "layer"), rows, where, ladder.notes(made)
    )


def _limits_table(run: Run) -> Table:
    layers = tuple(limits.LAYERS)
    rows: list[tuple[str, ...]] = []
    for client in run.client_limits:
        found = {facts.layer: limits.cell(facts) for facts in client.layers}
        rows.append((clean(client.subject, 28), *(found.get(layer, "–") for layer in layers)))
    return Table("When the client gives up", ("client", *layers), rows, notes=limits.notes(run.client_limits))


def _first_median(case: Case | None) -> str:
    return duration(statistics.median(case.first_s)) if case is not None and case.first_s else "–"


def _later_median(case: Case | None) -> str:
    return duration(case.summary.median_s) if case is not None and case.summary is not None else "–"


def _method_table(run: Run) -> Iterator[Table]:
    facts = run.recording
    if facts is None or not (facts.methods or facts.starts_s):
        return
    is_watched = any(one.processor_s is not None for one in facts.methods)
    empty = ("",) * (3 if is_watched else 2)
    rows: list[tuple[str, ...]] = []
    if facts.starts_s:
        median, slowest = statistics.median(facts.starts_s), max(facts.starts_s)
        rows.append(("start of the server", f"{len(facts.starts_s):,}", duration(median), duration(slowest), *empty))
    for one in facts.methods[:MOST_METHODS]:
        name = clean(f"{one.method} {one.name}" if one.name else one.method, 60)
        values = (one.median_s, one.slowest_s, *((one.processor_s,) if is_watched else ()))
        times = [duration(value) if value is not None else "–" for value in values]
        failed = one.requests - one.succeeded
        number = f"{one.requests:,}" + (f", {failed:,} failed" if failed else "")
        rows.append((name, number, *times, size(one.request_bytes), size(one.reply_bytes)))
    columns = ("method", "requests", "median", "slowest", *(("processor",) if is_watched else ()), "sent", "received")
    notes = [f"{len(facts.methods) - MOST_METHODS} more methods."] if len(facts.methods) > MOST_METHODS else []
    yield Table("What the client asked", columns, rows, notes=notes)
    yield from recorded_result_tables(facts.methods, MOST_METHODS)
