"""Defaults of experiments that ``--help`` shows. The modules of the experiments take long to import."""

from __future__ import annotations

CHECK_ROUNDS = 2
CHECK_SLOW_ROUND_S = 45.0
"""A first round that takes longer is the only one, where the user gave no number."""
CHECK_CALLS = 3
CHECK_TIME_LIMIT_S = 60.0
EXPLAIN_BUDGET_S = 42.0
"""Time of the experiment, in which connecting and listing are included."""
GATE_TRIALS = 20
LIMITS_LONGEST_S = 90.0
PORT_VARIABLE = "PORT"
"""Environment variable with the port of a copy."""
TOLERANCE = 0.05
"""Tolerance of a comparison. A gate has its own."""
