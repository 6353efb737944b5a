"""The file of evidence that one program of Node.js writes while it runs: lines of JSON.

Design constraint: The program may write anything into the file, and may end at any byte. A line that is damaged is
left out.
"""

from __future__ import annotations

import http.client
import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from mcpace import _core
from mcpace.lab.inside.instrumentation import LONGEST_REASON, missing_on_failure, without_surrogates
from mcpace.lab.inside.node_stacks import LATEST_US, EvidenceLimits, SampledStacks
from mcpace.lab.inside.process_timers import ProcessTimers
from mcpace.lab.inside.regular_files import open_regular

MOST_PROGRAMS = 64
LONGEST_LINE = 15 << 20
"""Bytes of a line: less than the receiver of spans takes in one request."""
MOST_PAUSES = 100_000
MOST_POOL_WORK = 500_000
MOST_TIMERS = 500_000
POOL_WORK = ("files", "addresses of hosts")
"""Names of the work of other threads in a program of Node.js: see ``node/pool_work.cjs``."""
SOURCES = ("spans", "stacks", "pauses")
SEND_LIMIT_S = 10.0
DAMAGED = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""Errors of a line that is not as ``node/start.cjs`` writes it."""


@dataclass
class ProgramEvidence:
    """The report of one process about itself."""

    pid: int
    stacks: SampledStacks
    span_requests: list[bytes] = field(default_factory=list)
    pauses: list[tuple[int, int]] = field(default_factory=list)
    pool_work: list[tuple[int, int, str]] = field(default_factory=list)
    waits: ProcessTimers = field(default_factory=ProcessTimers)
    missing: list[tuple[str, str]] = field(default_factory=list)

    def add_line(self, line: bytes) -> None:
        """Adds the evidence of a line. Raises one of ``DAMAGED`` where the line is damaged."""
        of = json.loads(line)
        if "resourceSpans" in of:
            self.span_requests.append(line)
        elif "profile" in of:
            self.stacks.add_profile(of["profile"])
        elif "pauses" in of:
            for began_us, ended_us in of["pauses"]:
                if 0 <= began_us <= ended_us < LATEST_US and len(self.pauses) < MOST_PAUSES:
                    self.pauses.append((int(began_us * 1000), int(ended_us * 1000)))
        elif "poolWork" in of:
            for began_us, ended_us, work in of["poolWork"]:
                fits = 0 <= began_us <= ended_us < LATEST_US and len(self.pool_work) < MOST_POOL_WORK
                if fits and work in POOL_WORK:
                    self.pool_work.append((int(began_us * 1000), int(ended_us * 1000), work))
        elif "timers" in of:
            for number, calls in of["timerStacks"]:
                self.waits.stacks[int(number)] = self.stacks.stack_at(calls)
            for began_us, ended_us, stack in of["timers"]:
                if 0 <= began_us <= ended_us < LATEST_US and len(self.waits.timers) < MOST_TIMERS:
                    self.waits.timers.append((int(began_us * 1000), int(ended_us * 1000), int(stack)))
        elif "missing" in of and of["missing"]["source"] in SOURCES:
            reason = without_surrogates(f"Node.js: {of['missing']['reason']}")
            self.missing.append((of["missing"]["source"], reason[:LONGEST_REASON]))

    def add_to(self, recording: _core.Recording) -> None:
        """Adds the evidence. A source that can't be added is missing."""
        label, add_missing = f"evidence of process {self.pid} of Node.js", recording.add_missing_source
        with missing_on_failure("stacks", label, add_missing):
            stacks = sorted(self.stacks.numbers, key=self.stacks.numbers.__getitem__)
            recording.add_stacks(self.pid, [list(stack) for stack in stacks], self.stacks.samples)
        with missing_on_failure("pauses", label, add_missing):
            recording.add_pauses(self.pid, self.pauses)
        with missing_on_failure("stacks", label, add_missing):
            recording.add_pool_work(self.pid, self.pool_work)
        with missing_on_failure("stacks", label, add_missing):
            self.waits.add_to(recording, self.pid)
        with missing_on_failure("spans", label, add_missing):
            recording.add_recording(_received_spans(self.span_requests))
        for source, reason in self.missing[:4]:
            recording.add_missing_source(source, reason)


def read_program(path: Path, limits: EvidenceLimits) -> ProgramEvidence:
    """Reads a file as far as ``limits`` allow, which become less. The first line names the process."""
    lines = _bounded_lines(path, limits)
    pid, package = 0, ""
    try:
        program = json.loads(next(lines, b"{}"))["program"]
        pid, package = int(program["pid"]) & 0x7FFFFFFF, package_folder(str(program["script"]))
    except DAMAGED:
        pass
    evidence = ProgramEvidence(pid, SampledStacks(package, limits))
    for line in lines:
        try:
            evidence.add_line(line)
        except DAMAGED:
            continue
    return evidence


def package_folder(script: str) -> str:
    """The folder of the installed package that a script belongs to, with a slash at the end; empty for others."""
    parts = PurePath(script).parts
    for at in range(len(parts) - 2, 0, -1):
        if parts[at] == "node_modules":
            end = at + (3 if parts[at + 1].startswith("@") else 2)
            return f"{PurePath(*parts[:end])}/"
    return ""


def _bounded_lines(path: Path, limits: EvidenceLimits) -> Iterator[bytes]:
    """Whole lines of the file that are not too long."""
    try:
        with open_regular(path) as file:
            is_inside = False
            while limits.bytes > 0 and (line := file.readline(min(limits.bytes, LONGEST_LINE))):
                limits.bytes -= len(line)
                is_whole = line.endswith(b"\n")
                if is_whole and not is_inside:
                    yield line
                is_inside = not is_whole
    except OSError:
        return


def _received_spans(requests: list[bytes]) -> _core.Recording:
    """The spans of requests of OTLP in JSON, on the clock of recordings."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    receiver = _core.SpanReceiver()
    try:
        for body in requests:
            request = urllib.request.Request(
                f"{receiver.endpoint}/v1/traces", body, {"content-type": "application/json"}
            )
            try:
                opener.open(request, timeout=SEND_LIMIT_S).close()
            except (OSError, http.client.HTTPException):
                continue
    finally:
        recording = receiver.stop()
    return recording
