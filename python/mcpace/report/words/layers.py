"""The sentences of one server's layers.

Design constraint: a sentence states only facts that the Run holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcpace.report.model.run import Case, Run
from mcpace.report.words.quantities import clean, count, duration, listed, share, times

MEANINGS: dict[str, str] = {
    "direct": "the tool's own function",
    "handler": "dispatch, without a transport",
    "in-process": "a client in the same process",
    "socket": "a client over a socket",
}
"""The layers in their order, each a heading's worth."""

ADDED: dict[str, str] = {
    "direct": "the function's own",
    "handler": "dispatch",
    "in-process": "the transport in process and its client",
    "socket": "the transport: HTTP, JSON-RPC, the socket and its client",
}
"""What a layer adds to those inside it."""


def sentences(run: Run) -> list[str]:
    """The verdict: what a call takes at its outermost, of which the function itself; the dearest layer."""
    measured = measured_cases(run)
    if not measured:
        return ["No layer could be measured."]
    outer, first = measured[-1], measured[0]
    tool, total = clean(outer.tool or "the tool", 60), outer.median_s or 0.0
    told = [f"A call of {tool} takes {duration(total)} {_where(outer)}"]
    if first is not outer and layer_name(first) == "direct":
        told[0] += f", of which its own function takes {duration(first.median_s or 0.0)}"
    told[0] += "."
    dearest = max(inside(measured), key=_adds, default=first)
    if dearest is not first and total > 0:
        adds, what = _adds(dearest), ADDED.get(layer_name(dearest), layer_name(dearest))
        told.append(f"Most is {what}: {duration(adds)}, {share(adds, total)} of it.")
    missing = [layer_name(case) for case in run.cases if case.median_s is None]
    if missing:
        told.append(f"{count(len(missing), 'layer')} could not be measured: {listed(missing)}.")
    return told


def measured_cases(run: Run) -> list[Case]:
    """The layers that have a figure, innermost first."""
    return [case for case in run.cases if case.layer and case.median_s is not None]


def inside(measured: list[Case]) -> list[Case]:
    """The layers that the outermost one is made of, and itself."""
    return [case for case in measured if case.layer and case.layer.share is not None]


def layer_name(case: Case) -> str:
    """Of a case of layers."""
    return clean(case.layer.name, 20) if case.layer else ""


def conditions(run: Run) -> Iterator[str]:
    """What was run, and how."""
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
    """``+4.1 µs``: over the direct call."""
    if case.over_direct_s is None or layer_name(case) == "direct":
        return ""
    return f"{'+' if case.over_direct_s >= 0 else '−'}{duration(abs(case.over_direct_s))}"


def ratio_words(case: Case) -> str:
    """``38×`` the direct call."""
    if case.layer is None or case.layer.ratio is None or layer_name(case) == "direct":
        return ""
    return times(case.layer.ratio)


def share_words(case: Case) -> str:
    """Of the outermost layer's time; empty for one that is not inside it."""
    return "" if case.layer is None or case.layer.share is None else share(max(case.layer.share, 0.0), 1.0)


def remark(case: Case) -> str:
    """Why there is no figure, or no more of them."""
    if case.unsupported:
        return f"left out: {clean(case.unsupported)}"
    return f"ended early: {clean(case.error)}" if case.error else ""


def _where(case: Case) -> str:
    return {
        "direct": "called directly",
        "handler": "through its handler",
        "in-process": "in process",
        "socket": "over a socket",
    }.get(layer_name(case), layer_name(case))


def _adds(case: Case) -> float:
    return (case.layer.adds_s or 0.0) if case.layer else 0.0
