"""The layers of one server for the page."""

from __future__ import annotations

from mcpace.report.model.run import Case, Run
from mcpace.report.page.model import LayerShown, LayersShown
from mcpace.report.words.layers import (
    MEANINGS,
    conditions,
    layer_name,
    layers_inside,
    measured_cases,
    over_words,
    ratio_words,
    remark,
    share_words,
)
from mcpace.report.words.quantities import clean, round_digits

MOST_BATCHES = 400


def layers_of(run: Run) -> LayersShown | None:
    """The layers of a run; ``None`` for other runs."""
    if run.kind != "layers" or not run.cases:
        return None
    first = run.cases[0]
    within = {layer_name(case) for case in layers_inside(measured_cases(run))}
    return LayersShown(
        title=f"{clean(first.tool or '', 60)} at {clean(first.target, 120)}, {clean(first.subject.label(), 60)}",
        layers=[_layer_view(case, layer_name(case) in within) for case in run.cases],
        conditions=list(conditions(run)),
    )


def _layer_view(case: Case, is_inside: bool) -> LayerShown:
    layer, name = case.layer, layer_name(case)
    measured = layer is not None and case.median_s is not None
    step = max(1, -(-len(case.trials_s) // MOST_BATCHES))
    return LayerShown(
        name=name,
        meaning=MEANINGS.get(name, ""),
        batches_s=[round_digits(batch) for batch in case.trials_s[::step]] if measured else [],
        median_s=case.median_s,
        low_s=layer.low_s if layer else None,
        high_s=layer.high_s if layer else None,
        over=over_words(case),
        ratio=ratio_words(case),
        adds_s=layer.adds_s if layer else None,
        share=share_words(case),
        inside=is_inside,
        remark=remark(case),
    )
