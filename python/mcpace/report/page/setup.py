"""The machine, the set-up and the method of a run, for the foot of the page."""

from __future__ import annotations

from collections.abc import Iterator

from mcpace.report.model.comparison import SideFacts
from mcpace.report.model.run import Run
from mcpace.report.page.model import Fact, Packages
from mcpace.report.words.comparison import machine_words, sides, system_words
from mcpace.report.words.quantities import clean, size
from mcpace.report.words.spans import join_sentences

SHOWN_PACKAGES = 400
"""Maximum number of listed packages of one environment."""

INTERVAL = (
    "with a distribution-free interval (Hodges–Lehmann). Where that includes 1, no difference was seen; it doesn't "
    "prove that there is none"
)
COMPARED = (
    "with a 95 % interval: trials and rounds by ranks (Hodges–Lehmann), a load's seconds in batches by the bootstrap. "
    "Where that includes 1, no difference was seen; how small a one would have been seen stands beside it"
)


def machine(run: Run) -> str:
    """The machine of a run, in one line. A comparison of two saved runs has the machines of those runs, because the
    machine of the comparison is irrelevant."""
    told = sides(run)
    if len(told) == 2:
        return " against ".join(dict.fromkeys(machine_words(each) for _, _, each in told))
    found = run.machine
    parts = [clean(found.cpu, 120), f"{found.cores} cores", size(found.memory_bytes), clean(found.architecture, 40)]
    return ", ".join(part for part in parts if part)


def facts(run: Run) -> list[Fact]:
    """The set-up and every option."""
    told = sides(run)
    # Comparisons of older releases have facts of one side only; the second side ran on this run's machine.
    found = _side_facts(run, told) if len(told) == 2 else [*_side_facts(run, told), *_machine_facts(run)]
    return [Fact(name=name, value=value) for name, value in found] + [
        _option_fact(name, value)
        for name, value in run.options.items()
        # The facts above already name two compared runs.
        if run.kind != "compare" or name not in ("base", "run")
    ]


def _machine_facts(run: Run) -> list[tuple[str, str]]:
    return [
        ("Measured with", f"mcpace {clean(run.mcpace, 40)}, {clean(run.started, 40)}"),
        ("Machine", machine(run)),
        ("System", f"{clean(run.machine.system, 120)}, Python {clean(run.machine.python, 40)}"),
    ]


def _side_facts(run: Run, told: list[tuple[str, str, SideFacts]]) -> list[tuple[str, str]]:
    found = [(f"The {name}", what) for name, what, _ in told]
    for what, words in (("machine", machine_words), ("system", system_words)):
        each = {name: words(where) for name, _, where in told}
        if len(told) == 2 and len(set(each.values())) == 1:
            found.append((f"The {what} of both", each["first"]))
        else:
            found += [(f"The {name}'s {what}", where) for name, where in each.items()]
    return [*found, ("Compared with", f"mcpace {clean(run.mcpace, 40)}")] if len(told) == 2 else found


def _option_fact(name: str, value: object) -> Fact:
    told = clean(_option_words(value), 300)
    if name == "tolerance" and isinstance(value, float):
        told = f"{100 * value:.3g} %"
    elif name.endswith("_s") and isinstance(value, int | float) and not isinstance(value, bool):
        name, told = name.removesuffix("_s"), f"{value:g} s"
    return Fact(name=clean(name, 60).replace("_", " "), value=told)


def _option_words(value: object) -> str:
    """Readable form of an option's value."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_option_words(part)}" for name, part in value.items()) or "–"
    return (", ".join(_option_words(part) for part in value) or "–") if isinstance(value, list) else str(value)


def _dependency_date(day: str | None) -> str:
    return f", its dependencies of {clean(day, 20)} instead of its own time" if day else ""


def packages(run: Run) -> list[Packages]:
    """The packages of every environment, with their exact versions."""
    return [
        Packages(
            label=clean(label, 60) + _dependency_date(run.dependencies_as_of.get(label)),
            packages=[
                f"{clean(name, 80)} {clean(version, 60)}" for name, version in list(held.items())[:SHOWN_PACKAGES]
            ],
        )
        for label, held in run.versions.items()
    ]


def ledger_words(run: Run) -> str:
    """Introduction to the ledgers."""
    if run.kind in ("load", "servers"):
        return (
            "Mean of calls beside the load, by one user more who asked the server for its layers. They are in no other "
            "figure."
        )
    return "Mean of the warm trials. The parts add up to it exactly."


def method(run: Run) -> list[Fact]:
    """The method by which the figures were measured, one paragraph for each fact."""
    return [Fact(name=name, value=words) for name, words in _method_facts(run)]


def _method_facts(run: Run) -> Iterator[tuple[str, str]]:
    match run.kind:
        case "load" | "servers":
            yield from _load_method()
        case "layers":
            yield from _layers_method()
        case "explain":
            yield from _factors_method()
        case "limits":
            yield (
                "Limits",
                "A scripted server answers after the longest time. A client that gives up earlier is then asked with "
                "shorter times, until the longest answered time and the time at which it gave up are a tenth apart.",
            )
        case "compare":
            yield from _two_runs_method()
        case "gate" if run.comparison and "measured-once" in run.comparison.warnings:
            yield from _two_runs_method()
        case "check":
            yield from _check_method()
        case "replicas":
            yield (
                "Copies",
                "Each policy has copies of its own behind a balancer of mcpace's. Sessions stay open while a copy is "
                "killed, a copy is added, and all copies are replaced. A refused connection is tried at the next copy.",
            )
        case "query":
            yield (
                "Percentiles",
                "They are those of replies without an error. Durations are counted by value, rounded to three digits.",
            )
            yield (
                "Intervals",
                "Requests of one recording within one hour are a cluster. The interval of a percentile is Woodruff's "
                "over the clusters, and the interval of a ratio combines those of both sides.",
            )
        case "recordings":
            yield (
                "Recordings",
                "Each recording was explained alone. The median is that of the tool that is called most. The cost of a "
                "finding is the sum over all its recordings.",
            )
        case "processes":
            yield (
                "Processes",
                "The kernel's list of processes was read once. A server has no host where no process holds the other "
                "end of its standard input, and the server goes on running for two more seconds. Secrets are removed "
                "from commands by the names of options and variables.",
            )
        case "recording":
            yield from _recording_method(run)
            yield from _ledgers_method()
        case _:
            yield from _trials_method(run)
            yield from _ledgers_method()


def _load_method() -> Iterator[tuple[str, str]]:
    yield (
        "Checked",
        "Each reply was parsed and checked: its id, that it is no error, that it is whole. A failed call is counted "
        "and is part of no latency.",
    )
    yield (
        "Latency",
        "It runs from when a call was due: in an open load from its place in the schedule, which no slow target moves; "
        "in a closed one from when its user was ready. “Sent” leaves out what a call waited for before it left.",
    )
    yield (
        "Distribution",
        "Equal widths are equal ratios: the scale is logarithmic. The percentiles beside it are of all calls, not of "
        "the drawing.",
    )
    yield (
        "Generator-limited",
        "It is said where the generator itself was late or had no time left: then the figures are its own.",
    )


def _layers_method() -> Iterator[tuple[str, str]]:
    yield (
        "Batches",
        "Each layer was called in batches, in rounds over the layers, there and back, after a warm-up. A batch's "
        "figure is its time over its calls; the median and the quartiles are over the batches. The clock is the "
        "worker's own, read before and after a batch.",
    )
    yield (
        "Inside each other",
        "The handler contains the direct call; the client in process and the one over the socket each contain the "
        "handler. In process the client is the SDK's own, over the socket it is a bare one that is the same for every "
        "SDK: so the socket may well be the quicker of the two. Shares are of the outermost layer and add up to all of "
        "it.",
    )


def _factors_method() -> Iterator[tuple[str, str]]:
    yield (
        "Slices",
        "mcpace's own clients called the tool in short slices: with one thing changed, and with nothing changed before "
        "and after them, in rounds there and back, so that drift of machine and target hits all alike.",
    )
    yield (
        "A call's time",
        "It is the median of a slice, from when its user was free to call until the reply was there, connecting "
        "included.",
    )
    yield (
        "A ratio",
        "It is the mean ratio of a changed slice to the unchanged ones around it, with a repeated confidence interval "
        "(Student's t, its error spread over the looks): a change is measured until its answer is clear, and the "
        "interval holds in spite of that. Where it includes 1 and reaches beyond 10 %, the answer is open.",
    )


def _two_runs_method() -> Iterator[tuple[str, str]]:
    yield (
        "Two runs",
        "Nothing was measured here: two saved runs are held against each other. How each was made stands in its own "
        "report.",
    )
    yield "A ratio", f"It is the second run's figure over the first one's, {COMPARED}."


def _check_method() -> Iterator[tuple[str, str]]:
    yield (
        "Rounds",
        "In each round all servers were started at the same time, as hosts start them, and then one by one. The order "
        "of the servers alternates. The disk's cache was not emptied, so a start from a cold disk takes longer.",
    )
    yield (
        "A start",
        "It runs from the decision to start the server to the complete list of its tools. Its parts add up to it. The "
        "start of the server's own program is seen in /proc, to about 10 ms. One more start of the same server divides "
        "the starts one by one further: by Python's import times, and by what npm and uv report.",
    )
    yield (
        "What was tried",
        "The program that the package runner had started was started again without the package runner, in each round. "
        "Fewer servers were started at the same time where this may save a quarter of the wait.",
    )
    yield (
        "Tokens",
        "Name, description and input schema of each tool as JSON. Most hosts don't give output schemas to the model.",
    )


def _recording_method(run: Run) -> Iterator[tuple[str, str]]:
    if run.recording and run.recording.traces_only:
        yield (
            "The traces",
            "Nothing was run and nothing was recorded for this: the spans that programs reported were read from a "
            "file. A call is the span of a server that answers tools/call, or its POST to /mcp; all of its time is the "
            "server's.",
        )
        yield "The spans", " ".join(join_sentences(run.recording))
        return
    if run.recording and run.recording.spans:
        yield "The spans", " ".join(join_sentences(run.recording))
    yield (
        "The recording",
        "Nothing was run for this: what a recorder, or mcpace's own client, had stamped on one clock was read from a "
        "file. Its operations are those that the client's program marked in it; traffic of a program that marks none "
        "has no trials and no ledgers, only causes.",
    )
    yield (
        "The cold trial",
        "An operation's first one. It pays for what is done once, so it stands apart: medians, means and ledgers are "
        "over the warm trials after it.",
    )


def _trials_method(run: Run) -> Iterator[tuple[str, str]]:
    if run.kind in ("measure", "gate"):
        turns = ", the two sides taking turns" if run.comparison and run.comparison.interleaved else ""
        yield (
            "Trials",
            f"Each operation was run several times with mcpace's own client{turns}; it stamps every request, reply and "
            "event on one clock.",
        )
    else:
        yield (
            "Trials",
            "Each operation was run several times with the real client, subjects taking turns so that drift of the "
            "machine hits all alike. A recorder between client and server stamped every request, reply and event on "
            "one clock.",
        )
    yield (
        "The cold trial",
        "It is the first one. It pays for imports, discovery and registration, so it stands apart: medians, means and "
        "comparisons are over the warm trials after it.",
    )
    if run.kind == "gate":
        yield "A ratio", f"It is the second side's figure over the first one's, {COMPARED}."
        yield (
            "Red",
            "Only what is worse by more than the tolerance with its whole interval, or wrong, and is so in every "
            "attempt: a red verdict is measured again from the beginning.",
        )
    elif run.kind != "measure":
        yield (
            "A change",
            f"It is a typical ratio of a warm trial to one of the first subject's, {INTERVAL}. Of dozens of such "
            "intervals one or two exclude 1 by chance: the verdict names only changes whose whole interval is beyond "
            "1.25×.",
        )


def _ledgers_method() -> Iterator[tuple[str, str]]:
    yield (
        "The server's own account",
        "Where a server tells its layers, they stand as a strip along the foot of its part: transport, dispatch, "
        "service, and a rest that is the network's and what it did not tell. They add up to server. An account that "
        "can't be true, longer than its whole exchange, splits nothing.",
    )
    yield (
        "unaccounted",
        "What could not be attributed to a layer, with the recorder's own passing time. It is shown and never spread "
        "over the other parts: a large one means that the split should not be trusted.",
    )
