"""A Run as SARIF 2.1.0, for code scanning: a rule for each cause, a result for each problem.

Design constraint: a result has a physical location, since GitHub refuses a file with a result that has none. Where no
line is known, the location is the name of the target.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from mcpace.report.ci.problems import Problem, problems
from mcpace.report.model.run import Run
from mcpace.report.words.quantities import clean

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(run: Run, prefix: str = "") -> str:
    """The problems of the run as SARIF text. ``prefix``: folder of the measurement in the repository."""
    found = problems(run)
    rules = {problem.code: _rule(problem) for problem in reversed(found)}
    codes = list(rules)
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "mcpace", "version": clean(run.mcpace, 60), "rules": list(rules.values())}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(problem, codes.index(problem.code), prefix, run) for problem in found],
            }
        ],
    }
    return json.dumps(log, indent=1, ensure_ascii=False) + "\n"


def _rule(problem: Problem) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": problem.code,
        "shortDescription": {"text": problem.title},
        "defaultConfiguration": {"level": problem.level},
    }
    if problem.check:
        rule["help"] = {"text": problem.check}
    return rule


def _result(problem: Problem, rule: int, prefix: str, run: Run) -> dict[str, Any]:
    path = str(PurePosixPath(prefix, problem.file)) if problem.file is not None else problem.target
    result: dict[str, Any] = {
        "ruleId": problem.code,
        "ruleIndex": rule,
        "level": problem.level,
        "message": {"text": problem.text or problem.title},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(path) or "target"},
                    "region": {"startLine": problem.line or 1},
                },
                "logicalLocations": [{"fullyQualifiedName": problem.target}],
            }
        ],
    }
    if run.comparison is not None:
        result["baselineState"] = "new" if problem.is_new else "unchanged"
    return result
