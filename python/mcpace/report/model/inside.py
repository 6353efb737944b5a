"""Where the time inside a tool went, in a Run."""

from __future__ import annotations

from typing import Literal

from mcpace.report.model.base import Model, Number, Whole


class DependencyWait(Model):
    """Waits for one dependency: means over the calls, in seconds."""

    kind: Literal["http", "database", "other", "connection", "program", "pool-work", "timer"]
    """``connection`` where only the connection to it is known; ``program`` for a program that the server started;
    ``pool-work`` for work that the runtime of its language does on threads of its own; ``timer`` for all timers that
    the code of the tool set."""
    name: str
    """``api.example.org:8080``, ``postgresql shop``, ``10.0.0.5:5432``, ``git``, ``files``, ``timer``."""
    requests: Number
    """Requests in a call; 0 for a connection, a program, work of the runtime and a timer."""
    time_s: Number
    """Time in which the program waited for the dependency and did nothing else."""


class PackageTime(Model):
    """Time in which a thread ran for one package: means over the calls, in seconds."""

    package: str | None = None
    """Name by which the package is imported; ``None`` for the server's own code."""
    time_s: Number


class LineTime(Model):
    """The time of one line of the server's own code: means over the calls, in seconds."""

    file: str
    line: Whole
    function: str
    callee: str | None = None
    """The function of a library that the line calls; ``None`` where the line itself takes the time."""
    running_s: Number
    """Time in which a thread ran there."""
    waiting_s: Number
    """Time in which a thread waited there, and no span tells for what."""


class AddedTime(Model):
    """Time that looking inside adds to a call, from rounds of calls with and without it in turns."""

    plain_s: Number
    """Median call without it."""
    ratio: Number
    """A call with it divided by a call without it: geometric mean of the rounds' ratios."""
    low: Number | None = None
    high: Number | None = None
    """95 % interval of the ratio. Absent with fewer than two rounds."""
    rounds: Whole
    slow_start_s: Number | None = None
    """Time of a start of the program with it, where that is so long that fewer rounds than usual were run."""


class InsideSums(Model):
    """Work of a server's programs while calls overlapped: means a call, in seconds, of sums over all threads and
    requests. Threads and requests that overlap are added, so the times do not add up to the time of a call."""

    calls: Whole
    """Calls that returned in the stretch of time."""
    stretch_s: Number
    """Length of the stretch of time."""
    running_s: Number = 0.0
    """Time in which threads ran."""
    dependencies: list[DependencyWait] = []
    """Answer times of the dependencies."""
    packages: list[PackageTime] = []
    lines: list[LineTime] = []
    samples: Whole = 0
    """Moments that were sampled in the stretch of time."""
    spans: Whole = 0
    """Requests that began in the stretch of time."""
    missing: list[str] = []
    """Sources that gave nothing, each with the reason."""
    added: AddedTime | None = None


class FlameGraph(Model):
    """The stacks of a tool's calls as a tree: means over the calls, in seconds. The outermost calls together have the
    time in which a thread ran or waited within the calls.

    Lists in place of models keep a tree of 2,000 calls small. A stack begins at the code of the tool.
    """

    paths: list[str] = []
    """The files. A path is within the packages for code that is not the server's own."""
    origins: list[Literal["own", "library", "interpreter"]] = []
    """For each file, where its code comes from."""
    functions: list[str] = []
    """Names of the functions."""
    files: list[Whole] = []
    """For each function, the index of its file."""
    lines: list[Whole] = []
    """For each function, the line of the call; 0 for code that is not the server's own."""
    parents: list[Whole] = []
    """For each node of the tree, the position of the node that calls it, counted from 1; 0 for the outermost calls. A
    node stands before the nodes that it calls."""
    frames: list[Whole] = []
    """For each node, the position of its function, counted from 1; 0 for several calls that take little time."""
    running_s: list[Number] = []
    """For each node, the time in which a thread ran in it and in the calls within."""
    waiting_s: list[Number] = []
    """For each node, the time in which a thread waited in it and in the calls within."""


class ToolTime(Model):
    """Where the time of a tool's calls went inside the server: means over the calls that can be told apart, in seconds.
    Dependencies, packages, ``waiting_s`` and ``rest_s`` add up to ``server_s``, but for rows that were cut."""

    calls: Whole
    """Number of the calls."""
    first_calls: Whole = 0
    """Number of the calls that were the first of their process and are left out: a program loads and compiles code
    then."""
    traced: Whole = 0
    """Number of those calls that overlapped others and are told apart by their traces."""
    overlapping: Whole = 0
    """Number of the calls that overlapped others and are left out."""
    server_s: Number
    """Time from the request to its result at the server."""
    dependencies: list[DependencyWait] = []
    packages: list[PackageTime] = []
    lines: list[LineTime] = []
    waiting_s: Number = 0.0
    """Time in which a thread waited within the tool, and no span tells for what."""
    rest_s: Number = 0.0
    """Time of which no source tells."""
    samples: Whole = 0
    """Moments that were sampled within the calls."""
    spans: Whole = 0
    """Spans within the calls."""
    traced_spans: Whole = 0
    """Spans within the calls whose trace leads to the call. The others are joined by their time."""
    flame: FlameGraph | None = None
    """The stacks as a tree; absent where none were sampled."""
    missing: list[str] = []
    """Sources that gave nothing, each with the reason."""
    added: AddedTime | None = None

    def named_s(self) -> float:
        """Time of a call that is named: all but the rest."""
        return self.server_s - self.rest_s
