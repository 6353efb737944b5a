"""What was measured on, with and how, for the foot of the page."""

from __future__ import annotations

from collections.abc import Iterator

from mcpace.report.page_model import Fact, Packages
from mcpace.report.quantities import clean, size
from mcpace.report.run import Run

SHOWN_PACKAGES = 400
"""Of one environment."""


def machine(run: Run) -> str:
    """Where it ran, in a line."""
    found = run.machine
    parts = [clean(found.cpu, 120), f"{found.cores} cores", size(found.memory_bytes), clean(found.architecture, 40)]
    return ", ".join(part for part in parts if part)


def facts(run: Run) -> list[Fact]:
    """The set-up and every option."""
    found = [
        Fact(name="Measured with", value=f"mcpace {clean(run.mcpace, 40)}, {clean(run.started, 40)}"),
        Fact(name="Machine", value=machine(run)),
        Fact(name="System", value=f"{clean(run.machine.system, 120)}, Python {clean(run.machine.python, 40)}"),
    ]
    return found + [
        Fact(name=clean(name, 60).replace("_", " "), value=clean(_option(value), 300))
        for name, value in run.options.items()
    ]


def _option(value: object) -> str:
    """An option as its user would say it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_option(part)}" for name, part in value.items()) or "–"
    return (", ".join(_option(part) for part in value) or "–") if isinstance(value, list) else str(value)


def packages(run: Run) -> list[Packages]:
    """Every environment's packages with their exact versions."""
    return [
        Packages(
            label=clean(label, 60),
            packages=[
                f"{clean(name, 80)} {clean(version, 60)}" for name, version in list(held.items())[:SHOWN_PACKAGES]
            ],
        )
        for label, held in run.versions.items()
    ]


def ledger_words(run: Run) -> str:
    """What is to be known before the ledgers are read."""
    if run.kind in ("load", "servers"):
        return (
            "Mean of calls beside the load, by one user more who asked the server for its layers. They are in no other "
            "figure."
        )
    return "Mean of the warm trials. The parts add up to it exactly."


def method(run: Run) -> list[Fact]:
    """How the figures were made, a paragraph each."""
    return [Fact(name=name, value=words) for name, words in _method(run)]


def _method(run: Run) -> Iterator[tuple[str, str]]:
    match run.kind:
        case "load" | "servers":
            yield from _of_load()
        case "layers":
            yield from _of_layers()
        case _:
            yield from _of_trials(run)


def _of_load() -> Iterator[tuple[str, str]]:
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


def _of_layers() -> Iterator[tuple[str, str]]:
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


def _of_trials(run: Run) -> Iterator[tuple[str, str]]:
    if run.kind == "measure":
        yield (
            "Trials",
            "Each operation was run several times with mcpace's own client, which stamps every request, reply and "
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
    yield (
        "A change",
        "It is a typical ratio of a warm trial to one of the first subject's (Hodges–Lehmann), with a "
        "distribution-free 95 % interval. Where the interval includes 1, no difference was seen; that doesn't prove "
        "that there is none. Of dozens of such intervals one or two exclude 1 by chance: the verdict names only "
        "changes whose whole interval is beyond 1.25×.",
    )
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
