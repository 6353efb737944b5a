"""Samples of stacks and pauses from the lines that ``java/ReadRecording.java`` prints of a recording.

async-profiler or JDK Flight Recorder sample the threads that run. JDK Flight Recorder reports a wait when it ends, with
its stack. A moment without a sample is one in which no thread ran. Samples of all moments are made from both, because
the time for which a sample stands depends on those beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from mcpace.lab.inside.java_packages import JavaPackages

PERIOD_NS = 2_000_000
"""Period of the samples of async-profiler. Threads that it sampled within one period count as sampled at one moment."""
LONGEST_PERIOD_NS = 15_000_000
"""Longest gap between two samples that may be the recorder's period: JDK Flight Recorder keeps 5 ms or more."""
LEAST_GAPS = 20
"""Number of gaps from which on the median gap is taken as the recorder's period."""
MOST_SAMPLES = 500_000
LONGEST_WAIT_NS = 1_000_000_000
"""A wait that is longer, and takes half of the recording, is that of a thread that waits for work or for the end."""
WAITING_CLASSES = (
    "sun.nio.",
    "java.net.",
    "java.io.",
    "java.lang.Object",
    "java.lang.ProcessHandleImpl",
    "jdk.internal.",
)
"""Classes of the JDK whose native methods wait. Other native methods run."""
GENERATED = (
    "$$Lambda",
    "LambdaForm$",
    "$$FastClass",
    "$$SpringCGLIB",
    "$$EnhancerBy",
    "$Proxy",
    "GeneratedMethodAccessor",
)
"""Parts of the names of classes that are made while the program runs, and that no file has."""
NO_THREAD_RAN: tuple[int, ...] = ()

Frame = tuple[str, str, int]
"""Function, file and line."""
Clock = Callable[[int], int]
"""From a time of the wall clock to one of the recording's clock, in nanoseconds."""


@dataclass
class JavaRecording:
    """The record of one virtual machine, on the clock of recordings."""

    pid: int
    stacks: list[list[Frame]]
    samples: list[tuple[int, int, int, bool]]
    """Time, thread, index of the stack, and whether the thread ran."""
    pauses: list[tuple[int, int]]
    is_cut: bool
    """Whether later events were left out."""


@dataclass
class Lines:
    """The fields of the lines, by their kinds."""

    pid: int = 0
    properties: dict[str, str] = field(default_factory=dict)
    frames: dict[int, tuple[str, str, str, int]] = field(default_factory=dict)
    """Module of the JDK, class, method and line."""
    stacks: dict[int, tuple[int, ...]] = field(default_factory=dict)
    samples: list[tuple[int, int, int, bool]] = field(default_factory=list)
    """Time, thread, stack, and whether the thread was in native code."""
    waits: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Beginning, end, thread and stack."""
    pauses: list[tuple[int, int]] = field(default_factory=list)
    is_cut: bool = False


def parse_lines(text: str) -> Lines:
    """Parses what the reader printed. A last line that is cut off is left out."""
    lines = Lines()
    for line in text.split("\n")[:-1]:
        kind, *fields = line.split("\t")
        match kind, fields:
            case "sample", [at, thread, stack, state]:
                lines.samples.append((int(at), int(thread), int(stack), state == "native"))
            case "wait", [begin, end, thread, stack]:
                lines.waits.append((int(begin), int(end), int(thread), int(stack)))
            case "frame", [number, module, of_class, method, at_line]:
                lines.frames[int(number)] = (module, of_class, method, int(at_line))
            case "stack", [number, *frames]:
                lines.stacks[int(number)] = tuple(int(frame) for frame in frames)
            case "pause", [begin, end]:
                lines.pauses.append((int(begin), int(end)))
            case "property", [name, value]:
                lines.properties[name] = value
            case "process", [pid]:
                lines.pid = int(pid)
            case "more", []:
                lines.is_cut = True
            case _:
                raise ValueError(f"a line of the kind {kind[:20]!r} is not known")
    return lines


def read_recording(text: str, clock: Clock, *, has_agent: bool = False) -> JavaRecording:
    """Makes samples of what the reader printed. Raises `ValueError` for other text.

    ``has_agent``: whether OpenTelemetry's agent was in the virtual machine.
    """
    lines = parse_lines(text)
    class_path, command = (lines.properties.get(name, "") for name in ("java.class.path", "sun.java.command"))
    packages = JavaPackages(class_path, command, has_agent=has_agent)
    frames = {number: _frame(frame, packages) for number, frame in lines.frames.items()}
    stacks: dict[tuple[int, ...], int] = {NO_THREAD_RAN: 0}
    numbers: dict[int, int] = {}
    for number, of_stack in lines.stacks.items():
        kept = tuple(frame for frame in of_stack if frames[frame] is not None)
        numbers[number] = stacks.setdefault(kept, len(stacks))
    named = [[frame for number in kept if (frame := frames[number]) is not None] for kept in stacks]
    has_own = [any(_is_own(frame) for frame in stack) for stack in named]
    samples = [
        (clock(at), thread, numbers[stack], not is_native or not _waits_in_native(lines, stack))
        for at, thread, stack, is_native in lines.samples
    ]
    waits = [
        (clock(begin), clock(end), thread, numbers[stack])
        for begin, end, thread, stack in lines.waits
        if has_own[numbers[stack]] and not _waits_in_main(named[numbers[stack]])
    ]
    pauses = [(clock(begin), clock(end)) for begin, end in lines.pauses]
    moments, is_cut = fill_moments(samples, waits, pauses)
    return JavaRecording(lines.pid, named, moments, pauses, is_cut or lines.is_cut)


def _frame(frame: tuple[str, str, str, int], packages: JavaPackages) -> Frame | None:
    """A frame as recordings have it: its file tells its origin. ``None`` for classes that no file has.

    The file of a class of the JDK begins with ``jrt:/`` and the module; that of a library, with the jar and ``!/``.
    """
    module, of_class, method, line = frame
    if not of_class or any(part in of_class for part in GENERATED):
        return None
    package, _, name = of_class.rpartition(".")
    outer, *inner = name.split("$")
    path = "/".join(filter(None, [package.replace(".", "/"), f"{outer}.java"]))
    library = packages.library(of_class) if not module or package.startswith("io.opentelemetry") else None
    if library is not None:
        path = f"{library}.jar!/{path}"
    elif module:
        path = f"jrt:/{module}/{path}"
    # A lambda is named by the method that contains it, an anonymous class by the class that contains it.
    function = method.split("$")[1] if method.startswith("lambda$") and method.count("$") > 1 else method
    return ".".join([outer, *(part for part in inner if not part.isdigit()), function]), path, line


def _is_own(frame: Frame) -> bool:
    return not frame[1].startswith("jrt:/") and ".jar!/" not in frame[1]


def _waits_in_native(lines: Lines, stack: int) -> bool:
    innermost = lines.frames[lines.stacks[stack][0]]
    return innermost[1].startswith(WAITING_CLASSES)


def _waits_in_main(stack: list[Frame]) -> bool:
    """Whether the program's ``main`` itself waits, which is for its end."""
    own = next((frame for frame in stack if _is_own(frame)), None)
    return own is not None and own[0].endswith(".main")


def fill_moments(
    samples: list[tuple[int, int, int, bool]], waits: list[tuple[int, int, int, int]], pauses: list[tuple[int, int]]
) -> tuple[list[tuple[int, int, int, bool]], bool]:
    """Samples of all moments, from the threads that were sampled and the waits, and whether moments had to be left out.

    Samples of one period are of one moment. Moments are added where none was sampled. In a pause, the threads that ran
    before it stay where they were.
    """
    if not samples and not waits:
        return [], False
    passes: list[tuple[int, list[tuple[int, int, bool]]]] = []
    for at, thread, stack, running in sorted(samples):
        if not passes or at - passes[-1][0] >= PERIOD_NS:
            passes.append((at, []))
        passes[-1][1].append((thread, stack, running))
    end = max([at for at, _ in passes] + [end for _, end, *_ in waits])
    begin = min([at for at, _ in passes] + [begin for begin, *_ in waits])
    longest = max(LONGEST_WAIT_NS, (end - begin) // 2)
    in_order = sorted(wait for wait in waits if wait[1] - wait[0] <= longest)
    period = _period([at for at, _ in passes])
    moments: list[tuple[int, int, int, bool]] = []
    open_waits: dict[int, tuple[int, int]] = {}
    """End and stack of each thread's wait: the wait that ends last counts where a thread has several."""
    next_wait = next_pause = 0
    stopped: list[tuple[int, int, bool]] = []
    in_order_pauses = sorted(pauses)
    for at, sampled in _with_moments_between(begin, end, passes, period):
        while next_pause < len(in_order_pauses) and in_order_pauses[next_pause][1] <= at:
            next_pause += 1
        is_paused = next_pause < len(in_order_pauses) and in_order_pauses[next_pause][0] <= at
        seen = stopped = sampled or (stopped if is_paused else [])
        while next_wait < len(in_order) and in_order[next_wait][0] <= at:
            _, wait_end, thread, stack = in_order[next_wait]
            open_waits[thread] = max(open_waits.get(thread, (0, 0)), (wait_end, stack))
            next_wait += 1
        open_waits = {thread: wait for thread, wait in open_waits.items() if wait[0] > at}
        running_threads = {thread for thread, *_ in seen}
        found = [(at, *one) for one in seen]
        found += [
            (at, thread, stack, False) for thread, (_, stack) in open_waits.items() if thread not in running_threads
        ]
        if len(moments) + len(found) >= MOST_SAMPLES:
            return moments, True
        moments += found or [(at, 0, 0, False)]
    return moments, False


def _period(times: list[int]) -> int:
    """The period that the recorder kept. Gaps between busy moments tell: it may be longer than the one that was set."""
    gaps = sorted(gap for before, after in pairwise(times) if (gap := after - before) <= LONGEST_PERIOD_NS)
    return gaps[len(gaps) // 2] if len(gaps) >= LEAST_GAPS else PERIOD_NS


def _with_moments_between(
    begin: int, end: int, passes: list[tuple[int, list[tuple[int, int, bool]]]], period: int
) -> Iterable[tuple[int, list[tuple[int, int, bool]]]]:
    """The passes with moments between them, in the same steps as nearly as possible."""
    last = begin - period
    for at, seen in [*passes, (end + period, None)]:
        steps = max(round((at - last) / period), 1)
        for step in range(1, steps):
            yield last + (at - last) * step // steps, []
        if seen is not None:
            yield at, seen
        last = at
