"""Quantiles of Student's t distribution."""

from __future__ import annotations

import math

HALVINGS = 80
"""Steps of the bisection. They reach the precision of a float."""


def student_quantile(freedom: int, tail: float) -> float:
    """Value that a t variable with ``freedom`` degrees of freedom exceeds with probability ``tail`` (below 0.5)."""
    # Bisection over the angle: the tangent of an angle covers all values, however heavy the tails are.
    low, high = 0.0, math.pi / 2
    for _ in range(HALVINGS):
        angle = (low + high) / 2
        if _central_probability(freedom, angle) < 1 - 2 * tail:
            low = angle
        else:
            high = angle
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def _central_probability(freedom: int, angle: float) -> float:
    """Probability that \\|t\\| is at most sqrt(freedom) · tan(angle) (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2 == 1
    term = cosine if is_odd else 1.0
    total = 0.0
    for step in range(freedom // 2):
        total += term
        term *= cosine * cosine * ((2 * step + 2) / (2 * step + 3) if is_odd else (2 * step + 1) / (2 * step + 2))
    return 2 / math.pi * (angle + sine * total) if is_odd else sine * total
