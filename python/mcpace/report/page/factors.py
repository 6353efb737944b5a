"""Experiments on a live target for the page: one row for each factor, with advice."""

from __future__ import annotations

from mcpace.report.model.factors import Factor
from mcpace.report.model.run import Run
from mcpace.report.page.model import ComparedShown, FactorsShown
from mcpace.report.words.factors import advice_words, interval_words, left_out, name_words, ratio_words
from mcpace.report.words.quantities import clean, duration

VERDICTS = {"slower": "worse", "faster": "better", "same": "same"}


def factors_of(run: Run) -> FactorsShown | None:
    """The experiments of a run; ``None`` for other runs."""
    if not run.factors:
        return None
    made = [one for one in run.factors if one.verdict not in ("refused", "left-out")]
    return FactorsShown(
        target=clean(run.cases[0].target, 120) if run.cases else "",
        rows=[_row(one) for one in made],
        interval=interval_words(run),
        notes=left_out(run),
    )


def _row(one: Factor) -> ComparedShown:
    return ComparedShown.model_validate(
        {
            "place": name_words(one),
            "metric": "",
            "first": "" if one.base_s is None else duration(one.base_s),
            "second": "" if one.changed_s is None else duration(one.changed_s),
            "ratio": one.ratio,
            "low": one.low,
            "high": one.high,
            "ratio_words": ratio_words(one),
            "sees": "",
            "verdict": VERDICTS.get(one.verdict, "unclear"),
            "words": one.verdict,
            "breach": False,
            "advice": advice_words(one) if one.verdict in ("slower", "faster") else "",
        }
    )
