"""The sentences of experiments on a live target: what was changed, what came of it, what to do.

Design constraint: nothing is said that the run doesn't hold, as in :mod:`mcpace.report.words`.
"""

from __future__ import annotations

from mcpace.report import words
from mcpace.report.quantities import bare, clean, duration, listed, times
from mcpace.report.run import Run
from mcpace.report.run_factors import Factor

NAMES: dict[str, str] = {
    "quick-ack": "acknowledging at once (TCP_QUICKACK)",
    "connection": "a new connection for each call",
    "json": "asking for JSON alone",
    "sse": "asking for an event stream alone",
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
    (
        "concurrency",
        "slower",
    ): "Ten calls at once that take ten times as long run one after another: behind a lock, in one thread, or for want "
    "of processors, the caller's included.",
    ("argument", "slower"): "Send large content by reference (a resource's URI) where it can be.",
    ("session-per-call", "slower"): "Hold one session open for all calls.",
    ("no-session", "faster"): "Serve stateless where no tool needs the session.",
    ("revision", "faster"): "Update the side that speaks the slower revision.",
    ("standalone-get", "slower"): "Don't open the server's own stream where nothing is expected on it.",
    ("oauth", "slower"): "Keep tokens and registrations between runs.",
}
"""What to do about an effect."""


def sentences(run: Run) -> list[str]:
    """The verdict: the effects that are sure, the largest first."""
    seen = [one for one in run.factors if one.verdict in ("slower", "faster") and one.ratio]
    tried = [one for one in run.factors if one.verdict not in ("left-out", "refused")]
    case = run.cases[0] if run.cases else None
    tool = clean((case.tool if case else None) or "the tool", 60)
    if not tried:
        return [f"Nothing could be tried on {tool}."]
    base = case.latency_s.p50 if case and case.latency_s else None
    compared = any(one.ratio is not None for one in tried)
    told = [f"A call of {tool} takes {duration(base)}."] if base is not None else []
    told += [] if compared else ["Too few rounds to compare anything."]
    largest = sorted(seen, key=_weight, reverse=True)[:3]
    told += [f"{_capital(name_words(one))}: {effect_words(one)}{_because(one)}." for one in largest]
    if not seen and compared:
        told.append(f"None of {len(tried)} things that were changed one at a time made a difference that was seen.")
    return told


def name_words(factor: Factor) -> str:
    """What was changed."""
    name = NAMES.get(factor.code, clean(factor.code, 40))
    return f"{name} ({clean(factor.detail, 60)})" if factor.detail else name


def effect_words(factor: Factor) -> str:
    """``3.1× the time (2.9–3.3)``, of an effect that was seen."""
    if factor.ratio is None or factor.low is None or factor.high is None:
        return factor.verdict
    return f"{times(factor.ratio)} the time ({bare(factor.low)}–{bare(factor.high)})"


def ratio_words(factor: Factor) -> str:
    """``3.1× (2.9–3.3)``; where none is sure, ``same`` or the interval alone."""
    if factor.ratio is None or factor.low is None or factor.high is None:
        return "too few"
    interval = f"({bare(factor.low)}–{bare(factor.high)})"
    if factor.verdict in ("slower", "faster"):
        return f"{times(factor.ratio)} {interval}"
    return f"{'same' if factor.verdict == 'same' else '?'} {interval}"


def interval_words(run: Run) -> str:
    """The column of ratios and their intervals."""
    return f"ratio, {max((one.confidence for one in run.factors), default=0.0):.0%}".replace("%", " %")


def advice_words(factor: Factor) -> str:
    """What to do about it; empty where there is nothing to do."""
    if factor.cause:
        return words.advice_for(factor.cause, factor.facts)
    return ADVICE.get((factor.code, factor.verdict), "")


def left_out(run: Run) -> list[str]:
    """What was not tried or not taken."""
    refused = [one for one in run.factors if one.verdict == "refused"]
    skipped = [one for one in run.factors if one.verdict == "left-out"]
    told = [f"{_capital(name_words(one))} is not taken: {reason_words(one)}." for one in refused]
    if skipped:
        told.append(f"Not tried, since {reason_words(skipped[0])}: {listed([name_words(one) for one in skipped])}.")
    return told


def reason_words(factor: Factor) -> str:
    """Why it was not tried or not taken; empty of others."""
    if factor.verdict == "left-out":
        return clean(factor.reason, 200) or "a round of it takes too long for the budget (name a longer --budget)"
    return clean(factor.reason, 200)


def _because(factor: Factor) -> str:
    return f"; {words.clause_for(factor.cause)}" if factor.cause else ""


def _weight(factor: Factor) -> float:
    ratio = factor.ratio or 1.0
    return (10.0 if factor.cause else 1.0) * max(ratio, 1 / ratio)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
