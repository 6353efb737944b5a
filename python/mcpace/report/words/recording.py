"""The verdict on a saved recording: the causes that it proves, the most severe first."""

from __future__ import annotations

import shlex
import statistics

from mcpace.report.groups import Group, group_findings
from mcpace.report.model.recording import RecordingFacts
from mcpace.report.model.run import Finding, Run
from mcpace.report.words import findings
from mcpace.report.words.labels import computing_words
from mcpace.report.words.quantities import clean, count, duration

LIVE_EXPERIMENTS = frozenset(
    {
        "acknowledge-at-once",
        "ask-for-another-path",
        "call-from-second-session",
        "call-without-session",
        "connect-by-address",
        "ping-meanwhile",
        "refuse-standalone-stream",
    }
)
"""Codes of the deciding experiments that ``mcpace explain`` makes on a live target."""
LONGEST_TOOL = 128
"""Maximum length of a tool's name in a command."""

SHORTEST_SAVING_S = 0.1
"""The verdict mentions tool calls in turn where calls at the same time save at least this."""

TOLD = 3
"""Maximum number of causes that the verdict names. The report below it lists all."""


def sentences(run: Run) -> list[str]:
    """The causes that the recording proves, its requests, and its gaps."""
    groups = group_findings(run.cases)
    asked = _request_sentences(run, {group.code for group in groups[:TOLD]})
    told = [cause_sentence(group) for group in groups[:TOLD]]
    if len(groups) > TOLD:
        told.append(f"{count(len(groups) - TOLD, 'cause')} more below.")
    if not told:
        seen = ""
        if run.recording:
            seen = f" in {count(run.recording.events, 'span' if run.recording.traces_only else 'event')}"
        told = [f"No cause of lost time was found{seen}."]
    # Findings come first; without findings, the summary of methods.
    last = [*_gap_sentences(run), *_deciding_command(run, groups)]
    return [*told, *asked, *last] if groups else [*asked, *told, *last]


def _deciding_command(run: Run, groups: list[Group]) -> list[str]:
    """The live command that would decide an uncertain finding; empty where no live experiment decides one."""
    if not any(_is_decided_live(group.example) for group in groups):
        return []
    return [f"To decide: mcpace explain TARGET{_tool_option(run)}"]


def _is_decided_live(finding: Finding) -> bool:
    experiments = {finding.disproof, *(other.decided_by for other in finding.alternatives)}
    return finding.confidence != "high" and not LIVE_EXPERIMENTS.isdisjoint(experiments)


def _tool_option(run: Run) -> str:
    """The option that names the slowest tool. Empty for a name that is no plain text or begins with a dash."""
    tools = [one for one in run.recording.methods if one.method == "tools/call"] if run.recording else []
    name = max(tools, key=lambda one: one.slowest_s or 0.0).name if tools else None
    if not name or name.startswith("-") or clean(name, LONGEST_TOOL) != name:
        return ""
    return f" --tool {shlex.quote(name)}"


def _request_sentences(run: Run, causes: set[str]) -> list[str]:
    """The requests of a foreign client, and the slowest one, beside the sentences on ``causes``. Empty where the
    recording has marked operations, which the trials cover."""
    facts = run.recording
    if facts is None or any(case.trials_s for case in run.cases):
        return []
    told = []
    if facts.starts_s and "slow-start" not in causes:
        each = f" ({count(len(facts.starts_s), 'start')}, the median)" if len(facts.starts_s) > 1 else ""
        told.append(f"The server takes {duration(statistics.median(facts.starts_s))} to start{each}.")
    # The handshake with a new process is part of its start, which the sentence above covers.
    skipped = {"initialize", "server/discover"} if facts.starts_s else set()
    timed = [one for one in facts.methods if one.slowest_s is not None and one.method not in skipped]
    sent = f"The client sent {count(sum(one.requests for one in facts.methods), 'request')}"
    # A client that knows newer revisions asks for them, and a server that does not refuses.
    failed = sum(one.failed for one in facts.methods if one.method != "server/discover")
    if failed:
        sent += f", {failed:,} of which failed"
    if facts.methods and not any(one.succeeded or one.failed for one in facts.methods):
        told.append(f"{sent}; none was answered.")
    elif timed:
        slowest = max(timed, key=lambda one: one.slowest_s or 0.0)
        name = clean(f"{slowest.method} {slowest.name}" if slowest.name else slowest.method, 60)
        told.append(f"{sent}; the slowest was {name}, {duration(slowest.slowest_s or 0.0)}.")
        if slowest.processor_s is not None and slowest.median_s:
            computing = computing_words(slowest.processor_s, slowest.median_s)
            told.append(f"In the server, {computing} (medians of {name}, {duration(slowest.median_s)}).")
    return [*_exit_sentences(facts), *told, *_only_call_sentences(facts), *_serial_sentences(facts)]


def _exit_sentences(facts: RecordingFacts) -> list[str]:
    """Server processes that ended without the answers that the client waited for, or that failed before any answer."""
    told = []
    for one in facts.exits:
        how = f"was ended by signal {one.signal}" if one.signal is not None else f"ended with code {one.code}"
        if one.unanswered:
            told.append(f"The server's process {how} and left {count(one.unanswered, 'request')} without an answer.")
        elif one.code and not one.answered:
            told.append(f"The server's process {how} before it answered anything.")
    return told if len(told) <= TOLD else [*told[:TOLD], f"So did {len(told) - TOLD:,} more."]


def _only_call_sentences(facts: RecordingFacts) -> list[str]:
    """A process that was started for one tool call, which took less time than the start."""
    if len(facts.exits) != 1 or len(facts.starts_s) != 1:
        return []
    took = facts.exits[0].only_call_s
    if took is None or took >= facts.starts_s[0]:
        return []
    return [
        f"The server's process was started for one tool call, which took {duration(took)}. If the client starts one "
        "for each call, let it keep one for all calls."
    ]


def _serial_sentences(facts: RecordingFacts) -> list[str]:
    """Tool calls in turn, where making them at once would save time that is felt."""
    serial = facts.serial_calls
    if serial is None or serial.time_s - serial.at_once_s < SHORTEST_SAVING_S:
        return []
    saved = duration(serial.time_s - serial.at_once_s)
    return [
        f"The client made {count(serial.calls, 'tool call')} one after another without a pause between them, "
        f"in {duration(serial.time_s)}: at the same time, if none needs another's result, they would take {saved} less."
    ]


def cause_sentence(group: Group) -> str:
    """The cause, and its cost where it has one."""
    finding = group.example
    clause = findings.clause_for(group.code)
    cost = finding.cost_s or finding.total_s
    each = f" {findings.each_of(finding)}" if finding.calls else " in all"
    text = f"{clause[:1].upper()}{clause[1:]}"
    return f"{text}, which costs {duration(cost)}{each}." if cost > 0 else f"{text}."


def _gap_sentences(run: Run) -> list[str]:
    lacks = []
    if run.recording and run.recording.cut_off:
        lacks.append("The recording was cut off: what came after is not known.")
    if run.recording and run.recording.lost:
        lacks.append(f"{count(run.recording.lost, 'event')} could not be recorded, and may explain more.")
    return lacks
