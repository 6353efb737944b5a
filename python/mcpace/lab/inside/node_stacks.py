"""Sampled stacks from profiles of V8, the engine of Node.js (Chrome DevTools Protocol, ``Profiler.Profile``).

A profile's times are microseconds of CLOCK_MONOTONIC. A node of its tree is a function as called from one stack. The
profile counts lines for the innermost function only, and for all samples of a node together; the samples of a node
get these lines in turn. An outer function of the server's own has the line of its call where the text of its file
tells, and else the line at which it begins.

Design constraint: A profile was written by the server's process. Numbers and texts are checked and bounded.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from urllib.parse import unquote, urlsplit

from mcpace.lab.inside.instrumentation import without_surrogates
from mcpace.lab.inside.javascript_calls import JavaScriptCalls
from mcpace.lab.inside.source_maps import SourceMaps

MOST_FRAMES = 96
MOST_BYTES = 128 << 20
MOST_SAMPLES = 2_000_000
MOST_STACK_FRAMES = 2_000_000
"""Frames of all stacks that differ."""
MOST_SOURCE_S = 5.0
"""Processor time for reading the server's files, which tell lines more precisely than the profiles do."""
LONGEST_FUNCTION = 200
LONGEST_FILE = 400
LATEST_US = 1 << 53
LAST_LINE = (1 << 32) - 1

NATIVE = "node:native"
"""File of functions that are no JavaScript."""
IDLE = "(idle)"
ROOT = "(root)"
COLLECTS_GARBAGE = "(garbage collector)"
WAITS = {"spawnSync", "execSync", "execFileSync", "wait"}
"""Functions of Node.js and JavaScript in which the thread waits for something else."""

Frame = tuple[str, str, int]
Stack = tuple[Frame, ...]
Position = tuple[str, str, int, int]
"""A function, its file, and a line and a column there."""
Positions = tuple[Position, ...]


@dataclass
class EvidenceLimits:
    """Amounts of evidence that are still read. The programs of one server share them."""

    bytes: int = MOST_BYTES
    samples: int = MOST_SAMPLES
    stack_frames: int = MOST_STACK_FRAMES
    source_s: float = MOST_SOURCE_S

    @contextmanager
    def count_source_time(self) -> Iterator[None]:
        """Counts the processor time of the ``with`` block as time for the server's files."""
        began = time.thread_time()
        try:
            yield
        finally:
            self.source_s -= time.thread_time() - began


@dataclass
class SampledStacks:
    """The samples of one process, as ``Recording.add_stacks`` takes them."""

    package: str
    """Folder of the installed package that the program belongs to; empty where it belongs to none. Its files are named
    without the folder of packages, because they are the server's own."""
    limits: EvidenceLimits = field(default_factory=EvidenceLimits)
    numbers: dict[Stack, int] = field(default_factory=dict)
    samples: list[tuple[int, int, int, bool]] = field(default_factory=list)
    _last: Positions = ()
    _calls: JavaScriptCalls = field(default_factory=JavaScriptCalls)
    _maps: SourceMaps = field(default_factory=SourceMaps)
    _frames: dict[Position, Frame] = field(default_factory=dict)

    def add_profile(self, profile: dict[str, Any]) -> None:
        """Raises ValueError, TypeError, KeyError, AttributeError or OverflowError where it is no profile."""
        nodes = self._stacks_of_nodes(profile["nodes"])
        lines = {number: _lines_of_node(node) for number, node in nodes.nodes.items()}
        at_us = int(profile["startTime"])
        for number, delta in zip(profile["samples"], profile["timeDeltas"], strict=True):
            at_us += int(delta)
            if not 0 <= at_us < LATEST_US:
                raise ValueError("a sample is outside of all time")
            stack = nodes.stacks[number]
            innermost = stack[0][0] if stack else ROOT
            if innermost == ROOT or self.limits.samples <= 0:
                continue
            if innermost == IDLE:
                stack = ()
            elif innermost == COLLECTS_GARBAGE:
                # The stack of the collector is empty: it works for what ran before.
                stack = stack + self._last
            else:
                stack = (self._at_tick(stack[0], next(lines[number], None)), *stack[1:])
                self._last = stack
            self._add_sample(at_us, tuple(self._frame_at(position) for position in stack))

    def _add_sample(self, at_us: int, stack: Stack) -> None:
        if stack not in self.numbers:
            if len(stack) > self.limits.stack_frames:
                return
            self.limits.stack_frames -= len(stack)
            self.numbers[stack] = len(self.numbers)
        waits = any(function in WAITS and file.startswith("node:") for function, file, _ in stack)
        self.limits.samples -= 1
        self.samples.append((at_us * 1000, 0, self.numbers[stack], bool(stack) and not waits))

    def stack_at(self, calls: list[list[Any]]) -> Stack:
        """The stack of calls, each with its function, file, line and column; raises ValueError or TypeError where they
        are none. Empty where the limits leave no room.
        """
        positions = [_position(*call) for call in calls[:MOST_FRAMES]]
        if len(positions) > self.limits.stack_frames:
            return ()
        self.limits.stack_frames -= len(positions)
        return tuple(self._frame_at(position) for position in positions)

    def _stacks_of_nodes(self, listed: list[dict[str, Any]]) -> _Nodes:
        nodes = {int(node["id"]): node for node in listed}
        parents = {int(child): number for number, node in nodes.items() for child in node.get("children", ())}
        stacks: dict[int, Positions] = {}
        for number in nodes:
            # From the node outwards, to the root or to a node whose stack is known.
            path = list(islice(_ancestors(number, parents, stacks), len(nodes) + 1))
            known = stacks.get(path[-1])
            stack = known if known is not None else ()
            for inner in reversed(path[:-1] if known is not None else path):
                position = _position_of_call(nodes[inner]["callFrame"])
                stack = stack if position[0] == ROOT else (position, *self._at_call(stack, position[0]))[:MOST_FRAMES]
                stacks[inner] = stack
        return _Nodes(nodes, stacks)

    def _at_tick(self, beginning: Position, line: int | None) -> Position:
        """The innermost function at the line of a sample, if the line is one of that function."""
        _, file, begin, column = beginning
        if line is not None and self._is_own(file) and self.limits.source_s > 0:
            with self.limits.count_source_time():
                line = line if self._calls.has_line(file, begin, column, line) else None
        return _at_line(beginning, line)

    def _at_call(self, stack: Positions, callee: str) -> Positions:
        """The stack with its innermost function at the line at which it calls another one."""
        if not stack or not self._is_own(stack[0][1]) or self.limits.source_s <= 0:
            return stack
        _, file, begin, column = stack[0]
        with self.limits.count_source_time():
            line = self._calls.line_of_call(file, begin, column, callee)
        return (_at_line(stack[0], line), *stack[1:])

    def _is_own(self, file: str) -> bool:
        return file.startswith("/") and (
            "node_modules/" not in file or bool(self.package and file.startswith(self.package))
        )

    def _frame_at(self, position: Position) -> Frame:
        """The frame of a position, in the file that its author wrote."""
        if position not in self._frames:
            function, file, line, column = position
            if self._is_own(file) and self.limits.source_s > 0:
                with self.limits.count_source_time():
                    file, line = self._maps.original(file, line, column) or (file, line)
            if self.package and file.startswith(self.package):
                file = file.rsplit("node_modules/", 1)[-1]
            names = without_surrogates(function[:LONGEST_FUNCTION]), without_surrogates(file[-LONGEST_FILE:])
            self._frames[position] = (*names, min(line, LAST_LINE))
        return self._frames[position]


@dataclass
class _Nodes:
    nodes: dict[int, dict[str, Any]]
    stacks: dict[int, Positions]


def _ancestors(number: int, parents: dict[int, int], known: dict[int, Positions]) -> Iterator[int]:
    """The node, its parent and so on, up to the first whose stack is known, which comes last."""
    while True:
        yield number
        if number in known or number not in parents:
            return
        number = parents[number]


def _at_line(beginning: Position, line: int | None) -> Position:
    """A position of the function that begins at ``beginning``, at a line of it.

    The column is known at the beginning alone: code that a bundler wrote has many functions on one line.
    """
    function, file, begin, _ = beginning
    return beginning if line in (None, begin) else (function, file, line, 0)


def _position_of_call(call: dict[str, Any]) -> Position:
    """The beginning of a called function."""
    return _position(call["functionName"], call["url"], int(call["lineNumber"]) + 1, call["columnNumber"])


def _position(function: object, url: object, line: object, column: object) -> Position:
    """A position at a line, counted from 1, and a column, from 0."""
    address = str(url)
    file = unquote(urlsplit(address).path) if address.startswith("file://") else address or NATIVE
    line, column = int(str(line)), int(str(column))
    return str(function) or "(anonymous)", file, max(0, min(line, LAST_LINE)), max(0, column)


def _lines_of_node(node: dict[str, Any]) -> Iterator[int]:
    """The line of each sample in which the node's function is the innermost."""
    for tick in node.get("positionTicks", ()):
        line, ticks = int(tick["line"]), int(tick["ticks"])
        if 0 < line <= LAST_LINE:
            yield from (line for _ in range(min(ticks, MOST_SAMPLES)))
