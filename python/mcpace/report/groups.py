"""Groups the findings of a run by cause, so that a cause in nine cases is reported once, with all its places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mcpace.report.model.run import Case, Finding, Run

SEVERITIES = ("high", "medium", "low")


@dataclass(frozen=True)
class Sighting:
    """A finding and its case."""

    case: Case
    finding: Finding


@dataclass(frozen=True)
class OperationGroup:
    """Operations of one target in which the same subjects show a cause."""

    target: str
    operations: tuple[str, ...]
    subjects: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Every sighting of one cause, the costliest first; never empty."""

    code: str
    sightings: tuple[Sighting, ...]

    @property
    def example(self) -> Finding:
        """The costliest finding, or that of a tool call with at least half its cost, which is easier to understand."""
        most = self.sightings[0].finding.cost_s
        calls = (s.finding for s in self.sightings if s.case.operation == "call" and s.finding.cost_s >= most / 2)
        return next(calls, self.sightings[0].finding)

    @property
    def severity(self) -> str:
        """The highest severity of the group."""
        seen = {sighting.finding.severity for sighting in self.sightings}
        return next(severity for severity in SEVERITIES if severity in seen)

    @property
    def cost_range_s(self) -> tuple[float, float]:
        """Least and greatest cost, in seconds a call."""
        costs = [sighting.finding.cost_s for sighting in self.sightings]
        return min(costs), max(costs)

    @property
    def places(self) -> list[OperationGroup]:
        """The places of the cause, in the run's order. Operations with the same subjects share one place."""
        by_operation: dict[tuple[str, str], list[str]] = {}
        for sighting in self.sightings:
            case = sighting.case
            by_operation.setdefault((case.target, case.operation), []).append(case.subject.label())
        merged: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for (target, operation), subjects in by_operation.items():
            merged.setdefault((target, tuple(sorted(set(subjects)))), []).append(operation)
        return [
            OperationGroup(target, order_operations(operations), subjects)
            for (target, subjects), operations in merged.items()
        ]


def group_findings(cases: Iterable[Case]) -> list[Group]:
    """All findings of these cases by cause: gravest first, then costliest."""
    by_code: dict[str, list[Sighting]] = {}
    for case in cases:
        for finding in case.findings:
            by_code.setdefault(finding.code, []).append(Sighting(case, finding))
    groups = [
        Group(code, tuple(sorted(seen, key=lambda s: s.finding.cost_s, reverse=True))) for code, seen in by_code.items()
    ]
    return sorted(groups, key=lambda group: (SEVERITIES.index(group.severity), -group.cost_range_s[1]))


def targets(run: Run) -> list[str]:
    """Targets in the order of the run. Those of load cases are left out where the run has other cases."""
    trials = [case for case in run.cases if case.load is None]
    return list(dict.fromkeys(case.target for case in trials or run.cases))


def operations(run: Run, target: str) -> list[str]:
    """Operations at a target, in the order in which a client performs them."""
    return list(order_operations(case.operation for case in run.cases if case.target == target))


def cases_at(run: Run, target: str, operation: str) -> list[Case]:
    """The cases of one operation at one target, one for each subject, in the order of the run."""
    return [case for case in run.cases if case.target == target and case.operation == operation]


def subjects(run: Run) -> list[str]:
    """Labels of the subjects, in the order of the run."""
    return list(dict.fromkeys(case.subject.label() for case in run.cases))


def order_operations(names: Iterable[str]) -> tuple[str, ...]:
    """Operations in the order in which a client performs them, unknown ones last."""
    life = ("provider", "connect", "list", "call", "disconnect")
    return tuple(sorted(dict.fromkeys(names), key=lambda name: life.index(name) if name in life else len(life)))
