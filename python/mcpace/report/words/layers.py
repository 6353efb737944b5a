"""The sentences of one server's layers.

Design constraint: a sentence states only facts that the Run holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcpace.report.model.run import Case, Run
from mcpace.report.words.quantities import clean, count, duration, join_words, share, times

MEANINGS: dict[str, str] = {
    "direct": "the tool's own function",
    "handler": "dispatch, without a transport",
    "in-process": "a client in the same process",
    "socket": "a client over a socket",
}
"""Headings of the layers, from the innermost to the outermost."""

ADDED: dict[str, str] = {
    "direct": "the function's own",
    "handler": "dispatch",
    "in-process": "the transport in process and its client",
    "socket": "the transport: HTTP, JSON-RPC, the socket and its client",
}
"""The work that a layer adds to the layers inside it."""


def sentences(run: Run) -> list[str]:
    """The verdict: the time of a call through the outermost layer, the share of the tool's function, and the costliest
    layer."""
    measured = measured_cases(run)
    if not measured:
        return ["No layer could be measured."]
    outer, first = measured[-1], measured[0]
    tool, total = clean(outer.tool or "the tool", 60), outer.median_s or 0.0
    told = [f"A call of {tool} takes {duration(total)} {_layer_phrase(outer)}"]
    if first is not outer and layer_name(first) == "direct":
        told[0] += f", of which its own function takes {duration(first.median_s or 0.0)}"
    told[0] += "."
    dearest = max(layers_inside(measured), key=_added_seconds, default=first)
    if dearest is not first and total > 0:
        adds, what = _added_seconds(dearest), ADDED.get(layer_name(dearest), layer_name(dearest))
        told.append(f"Most is {what}: {duration(adds)}, {share(adds, total)} of it.")
    missing = [layer_name(case) for case in run.cases if case.median_s is None]
    if missing:
        told.append(f"{count(len(missing), 'layer')} could not be measured: {join_words(missing)}.")
    return told


def measured_cases(run: Run) -> list[Case]:
    """The measured layers, innermost first."""
    return [case for case in run.cases if case.layer and case.median_s is not None]


def layers_inside(measured: list[Case]) -> list[Case]:
    """The layers that make up the outermost layer, including itself."""
    return [case for case in measured if case.layer and case.layer.share is not None]


def layer_name(case: Case) -> str:
    """The name of a case's layer."""
    return clean(case.layer.name, 20) if case.layer else ""


def conditions(run: Run) -> Iterator[str]:
    """The versions and the batches of the measurement, one sentence each."""
    facts = run.layers
    if facts is None:
        return
    sdk = " ".join(clean(part, 40) for part in (facts.sdk, facts.version) if part)
    served = f"; the socket served by {clean(facts.served_by, 120)}" if facts.served_by else ""
    yield f"{sdk} on Python {clean(facts.python, 20)}{served}."
    for case in measured_cases(run):
        layer = case.layer
        assert layer is not None, "a measured layer has its facts"
        calls = f"{count(layer.batches, 'batch', 'batches')} of {count(layer.calls_per_batch, 'call')}"
        yield f"{layer_name(case)}: {clean(layer.includes)}; {calls}."


def over_words(case: Case) -> str:
    """``+4.1 µs``, the difference from the direct call."""
    if case.over_direct_s is None or layer_name(case) == "direct":
        return ""
    return f"{'+' if case.over_direct_s >= 0 else '−'}{duration(abs(case.over_direct_s))}"


def ratio_words(case: Case) -> str:
    """``38×``, the ratio to the direct call."""
    if case.layer is None or case.layer.ratio is None or layer_name(case) == "direct":
        return ""
    return times(case.layer.ratio)


def share_words(case: Case) -> str:
    """The share of the outermost layer's time; empty for a layer that is not inside it."""
    return "" if case.layer is None or case.layer.share is None else share(max(case.layer.share, 0.0), 1.0)


def remark(case: Case) -> str:
    """The reason why figures are missing."""
    if case.unsupported:
        return f"left out: {clean(case.unsupported)}"
    return f"ended early: {clean(case.error)}" if case.error else ""


def _layer_phrase(case: Case) -> str:
    return {
        "direct": "called directly",
        "handler": "through its handler",
        "in-process": "in process",
        "socket": "over a socket",
    }.get(layer_name(case), layer_name(case))


def _added_seconds(case: Case) -> float:
    return (case.layer.adds_s or 0.0) if case.layer else 0.0
