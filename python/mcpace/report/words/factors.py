"""The sentences of experiments on a live target: the change, its effect, the advice.

Design constraint: a sentence states only facts that the Run holds.
"""

from __future__ import annotations

import re

from mcpace.report.model.factors import Factor
from mcpace.report.model.run import Case, Run
from mcpace.report.words import findings, ladder, start
from mcpace.report.words.quantities import clean, count, duration, join_words, ratio_figure, times

NAMES: dict[str, str] = {
    "quick-ack": "acknowledging at once (TCP_QUICKACK)",
    "connection": "a new connection for each call",
    "json": "JSON only",
    "sse": "event stream only",
    "address": "connecting by address",
    "concurrency": "several calls at a time",
    "argument": "a large argument",
    "listing": "the tools listed before each call",
    "session-per-call": "a session for each call",
    "no-session": "without a session",
    "revision": "revision",
    "standalone-get": "with the server's own stream open",
    "oauth": "OAuth, not a token at hand",
}

ADVICE: dict[tuple[str, str], str] = {
    ("connection", "slower"): "Keep one client, and with it its connections, for all calls.",
    ("connection", "faster"): "Reused connections are the slower ones here: look for two small writes in a reply.",
    ("json", "faster"): "Have the server answer plain calls as JSON (json_response in Python's SDKs).",
    ("sse", "slower"): "Have the server answer plain calls as JSON (json_response in Python's SDKs).",
    ("address", "faster"): "Name that address in the URL, or have the server listen on both.",
    ("argument", "slower"): "Send large content by reference (a resource's URI) where it can be.",
    ("session-per-call", "slower"): "Hold one session open for all calls.",
    ("no-session", "faster"): "Serve stateless where no tool needs the session.",
    ("standalone-get", "slower"): "Don't open the server's own stream where nothing is expected on it.",
    ("oauth", "slower"): "Keep tokens and registrations between runs.",
}
"""Advice by factor and effect."""


NEWEST = "2026-07-28"
"""The newest known revision of the protocol."""
SERIAL = 0.7
"""Concurrent calls count as serial where a call takes at least this share of the time of all of them in sequence."""


def sentences(run: Run) -> list[str]:
    """The verdict: the significant effects, the largest first."""
    seen = [one for one in run.factors if one.verdict in ("slower", "faster") and one.ratio]
    tried = [one for one in run.factors if one.verdict not in ("left-out", "refused")]
    case = run.cases[0] if run.cases else None
    tool = clean((case.tool if case else None) or "the tool", 60)
    told = start.sentences(run)
    base = _base_s(case)
    told += [f"A call to {tool} takes {duration(base)}."] if base is not None else []
    located = ladder.sentences(run)
    told += located
    told += ladder.overlap_sentences(run.ladder) if run.ladder and run.ladder.cause else []
    if not tried and located:
        return told
    if not tried:
        return [*told, "No experiment could be made on it." if told else f"No experiment could be made on {tool}."]
    compared = any(one.ratio is not None for one in tried)
    told += [] if compared else ["Too few rounds to compare anything."]
    largest = sorted(seen, key=_effect_weight, reverse=True)[:3]
    told += [f"{_capitalize(name_words(one))}: {effect_words(one)}{_cause_clause(one)}." for one in largest]
    if not seen and compared:
        told.append(f"Nothing changed the time ({count(len(tried), 'experiment')}).")
    return told


def _base_s(case: Case | None) -> float | None:
    if case is None:
        return None
    return case.latency_s.p50 if case.latency_s else case.summary.median_s if case.summary else None


def name_words(factor: Factor) -> str:
    """The name of a factor, with its value."""
    name = NAMES.get(factor.code, clean(factor.code, 40))
    return f"{name} ({clean(factor.detail, 60)})" if factor.detail else name


def effect_words(factor: Factor) -> str:
    """``3.1× the time (2.9–3.3)`` or ``316× faster (290–340)``, for a significant effect."""
    if factor.ratio is None or factor.low is None or factor.high is None:
        return factor.verdict
    return ratio_words(factor) if factor.verdict == "faster" else ratio_words(factor).replace("×", "× the time", 1)


def ratio_words(factor: Factor) -> str:
    """``3.1× (2.9–3.3)`` or ``316× faster (290–340)``; for an effect that isn't significant, ``same`` or ``unclear``
    with the interval."""
    if factor.ratio is None or factor.low is None or factor.high is None:
        return "too few"
    if factor.verdict == "faster" and min(factor.ratio, factor.low, factor.high) > 0:
        return f"{times(1 / factor.ratio)} faster ({ratio_figure(1 / factor.high)}–{ratio_figure(1 / factor.low)})"
    interval = f"({ratio_figure(factor.low)}–{ratio_figure(factor.high)})"
    if factor.verdict in ("slower", "faster"):
        return f"{times(factor.ratio)} {interval}"
    return f"{'same' if factor.verdict == 'same' else 'unclear'} {interval}"


def interval_words(run: Run) -> str:
    """Heading of the column with the ratios and their intervals."""
    return f"ratio, {max((one.confidence for one in run.factors), default=0.0):.0%}".replace("%", " %")


def advice_words(factor: Factor) -> str:
    """Advice for an effect; empty where there is nothing to do."""
    if factor.cause:
        return findings.advice_for(factor.cause, factor.facts)
    match factor.code, factor.verdict:
        case "concurrency", "slower":
            return _concurrency_advice(factor)
        case "revision", "faster":
            return _revision_advice(factor)
    return ADVICE.get((factor.code, factor.verdict), "")


def _concurrency_advice(factor: Factor) -> str:
    at_once = re.match(r"\d+", factor.detail)
    if at_once is None or not factor.ratio:
        return ""
    calls = int(at_once[0])
    if factor.ratio >= SERIAL * calls:
        return (
            f"{calls} calls at once run one after another: behind a lock, in one thread, or for want of processors, "
            "the caller's included."
        )
    return f"{calls} calls at once are answered at {times(calls / factor.ratio)} the rate of one after another."


def _revision_advice(factor: Factor) -> str:
    if factor.detail >= NEWEST:
        return f"Update the side that does not speak {clean(factor.detail, 20)} yet."
    return f"The newer revision is the slower one here: where that matters, have the client ask for {factor.detail}."


def left_out(run: Run) -> list[str]:
    """Sentences on the experiments that could not be made."""
    refused = [one for one in run.factors if one.verdict == "refused"]
    skipped = [one for one in run.factors if one.verdict == "left-out"]
    told = [f"{_capitalize(name_words(one))}: {reason_words(one)}." for one in refused]
    for reason in dict.fromkeys(reason_words(one) for one in skipped):
        names = [name_words(one) for one in skipped if reason_words(one) == reason]
        told.append(f"Skipped, because {reason}: {join_words(names)}.")
    return told


def reason_words(factor: Factor) -> str:
    """The reason why an experiment could not be made; empty for other experiments."""
    reason = clean(factor.reason, 200).rstrip(".")
    if factor.verdict == "left-out" and "largest_effect_s" in factor.facts:
        return "the requests that reach no tool are too short for them to change a call noticeably"
    if factor.verdict == "left-out":
        return reason or "one round takes longer than the budget allows (give a longer --budget)"
    if factor.verdict == "refused" and (status := re.match(r"HTTP (\d{3})", reason)):
        return f"refused by the server ({status[1]}){reason[status.end() :]}"
    return f"skipped: {reason}" if reason else ""


def _cause_clause(factor: Factor) -> str:
    return f"; {findings.clause_for(factor.cause)}" if factor.cause else ""


def _effect_weight(factor: Factor) -> float:
    ratio = factor.ratio or 1.0
    return (10.0 if factor.cause else 1.0) * max(ratio, 1 / ratio)


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
