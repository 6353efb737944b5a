"""Binary search over published releases for the release that changed a behaviour, by real measurements.

The search itself (:func:`binary_search`) is a pure function of the releases and a judge. A release that can't run is
skipped: its nearest neighbour is tried instead, and the report names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from packaging.version import Version

from mcpace.lab.adapters import subject
from mcpace.lab.adapters.adapter import Adapter
from mcpace.lab.clients.plan import Settings, operations_at
from mcpace.lab.clients.run_clients import TargetRun, note_environment, prepare
from mcpace.lab.environments import releases
from mcpace.lab.errors import LabError, UsageProblem
from mcpace.lab.machine import new_run
from mcpace.lab.processes.interruption import defer_interrupt
from mcpace.lab.progress import Progress
from mcpace.lab.servers.started_target import start_target
from mcpace.lab.targets import Target
from mcpace.report.model.comparison import INSTRUMENTS
from mcpace.report.model.run import Bisection, Case, Probe, Run

PATIENCE = 5
"""Time limit of a release, as a multiple of the slowest trial of both ends; at least LEAST_LIMIT_S."""

LEAST_LIMIT_S = 10.0

CLEAR_RATIO = 2.0
"""Smallest ratio between the medians of both ends that allows a search."""

CLEAR_SHARE = 0.5
"""Smallest difference in the shares of failed attempts that makes the search look for failures."""

MOST_FAILURES = 0.5
"""Largest share of failed attempts with which times and findings of a release are meaningful."""


class Inconclusive(Exception):
    """The search is impossible, or both ends behave alike. ``run`` has the measurements so far."""

    def __init__(self, reason: LabError, run: Run) -> None:
        self.reason = reason
        self.run = run
        super().__init__(str(reason))


Judge = Callable[[str], Probe]
Verdict = Literal["good", "bad", "untestable"]


@dataclass(frozen=True)
class Criterion:
    """Criterion that separates good from bad releases.

    It is an operation that fails in the bad end, else findings that only the bad end has, else a threshold between the
    medians of both ends.
    """

    findings: frozenset[str] = frozenset()
    operation: str = ""
    threshold_s: float = 0.0
    failing: float | None = None
    """A release is bad if more than this share of its attempts at the operation fails."""

    def describe(self) -> str:
        """Describes the criterion for the Run."""
        if self.failing is not None:
            return f"bad fails in more than {self.failing:.0%} of its attempts to {self.operation}"
        if self.findings:
            return f"bad shows {', '.join(sorted(self.findings))}"
        return f"bad needs more than {self.threshold_s:.4g} s for {self.operation} at the median"

    def verdict(self, probe: Probe) -> Verdict:
        """Judges a measured release."""
        if self.failing is not None:
            share = probe.failed.get(self.operation)
            if share is None:  # It failed before the operation, for another reason.
                return "untestable"
            return "bad" if share > self.failing else "good"
        if not _is_measured(probe):
            return "untestable"
        if self.findings:
            return "bad" if self.findings & set(probe.findings) else "good"
        return "bad" if probe.medians_s.get(self.operation, 0.0) > self.threshold_s else "good"


@dataclass
class BisectOutcome:
    """Result of the search: ``changed`` is the first release, in the search's order, that behaves like the far end."""

    changed: str
    neighbour: str
    untestable: list[str] = field(default_factory=list)


def binary_search(order: Sequence[str], judge: Judge) -> BisectOutcome:
    """Binary search in ``order``, whose first and last elements are known to have different verdicts.

    ``judge`` is called for about log2(n) elements between them, if all can be tested.
    """
    low, high = 0, len(order) - 1
    far = judge(order[high]).verdict
    untestable: set[int] = set()
    while True:
        candidates = [index for index in range(low + 1, high) if index not in untestable]
        if not candidates:
            return BisectOutcome(order[high], order[low], [order[i] for i in range(low + 1, high)])
        middle = min(candidates, key=lambda index: abs(index - (low + high) / 2))
        verdict = judge(order[middle]).verdict
        if verdict == "untestable":
            untestable.add(middle)
        elif verdict == far:
            high = middle
        else:
            low = middle


def run(sdk: str, good: str, bad: str, target: Target, settings: Settings, progress: Progress) -> Run:
    """Finds the first bad release between ``good`` and ``bad``, or, if ``good`` is newer, the first fixed release.

    Ctrl-C ends the search early; the run is then marked partial and has the releases tried so far. Raises
    :class:`Inconclusive` where an end can't be measured or both ends behave alike.
    """
    adapter = subject.find_adapter(sdk)
    between = [release.version for release in releases.releases_between(adapter, good, bad, progress.preparing)]
    mending = Version(bad) < Version(good)
    # Version numbers as published: the user may have left out a trailing zero.
    good, bad = (between[-1], between[0]) if mending else (between[0], between[-1])
    options = {"sdk": sdk, "good": good, "bad": bad, "target": target.name, **settings.as_options()}
    result = new_run("bisect", options)
    result.bisection = Bisection(
        sdk=sdk, target=target.name, good=good, bad=bad, neighbour=None, criterion="", releases=len(between)
    )
    settings.make_folder()
    prober = _Prober(adapter, target, settings, progress, result)
    try:
        prober.measure_ends(good, bad)
        outcome = binary_search(between, prober.judge_version)
    except LabError as error:
        raise Inconclusive(error, result) from error
    except KeyboardInterrupt:
        result.partial = True
        return result
    result.bisection.neighbour = outcome.neighbour
    result.untestable = outcome.untestable
    if mending:
        result.first_good = outcome.changed
    else:
        result.first_bad = outcome.changed
    return result


class _Prober:
    """Measures releases one by one and caches the results."""

    def __init__(self, adapter: Adapter, target: Target, settings: Settings, progress: Progress, result: Run) -> None:
        assert result.bisection is not None, "the caller made it"
        self._adapter, self._target, self._settings, self._progress = adapter, target, settings, progress
        self._result, self._bisection = result, result.bisection
        self._criterion: Criterion | None = None
        self._known: dict[str, Probe] = {}

    def measure_ends(self, good: str, bad: str) -> None:
        """Measures both ends and selects the criterion that separates them."""
        first = self._measure_version(good)
        if not _is_measured(first):
            first.verdict = "untestable"
            raise LabError(f"{self._adapter.name}@{first.version} can't be measured: {first.reason}")
        last = self._measure_version(bad)
        if last.verdict == "untestable":
            raise LabError(f"{self._adapter.name}@{last.version} can't be measured: {last.reason}")
        self._criterion = _select_criterion(first, last)
        slowest = max(seconds for case in self._result.cases for seconds in case.trials_s)
        limit = min(self._settings.time_limit_s, max(LEAST_LIMIT_S, PATIENCE * slowest))
        self._settings = replace(self._settings, time_limit_s=limit)
        self._bisection.criterion = self._criterion.describe()
        first.verdict, last.verdict = "good", "bad"
        self._known = {good: first, bad: last}

    def judge_version(self, version: str) -> Probe:
        """Returns the verdict on one release, which is measured only once."""
        if version not in self._known:
            probe = self._measure_version(version)
            assert self._criterion is not None, "ends() comes first"
            if probe.verdict != "untestable":
                probe.verdict = self._criterion.verdict(probe)
            self._known[version] = probe
        return self._known[version]

    def _measure_version(self, version: str) -> Probe:
        ready = prepare(subject.Resolved(self._adapter, version, None), self._progress)
        self._progress.begin(self._settings.trials * len(operations_at(self._target)))
        with (
            start_target(self._target, self._progress) as started,
            TargetRun([ready], started, self._settings) as target_run,
        ):
            try:
                target_run.run_rounds(self._progress)
            finally:
                with defer_interrupt():
                    cases = target_run.cases()
                    self._result.cases += cases
        if ready.environment is not None:
            note_environment(self._result, ready.subject, ready.environment)
        probe = _summarize_cases(version, cases)
        self._bisection.probes.append(probe)
        return probe


def _summarize_cases(version: str, cases: list[Case]) -> Probe:
    """Summarizes the cases of a release; untestable where no operation could be tried."""
    unsupported = next((case.unsupported for case in cases if case.unsupported), None)
    tried = [case for case in cases if case.trials_s or case.failures]
    if unsupported or not tried:
        problem = unsupported or next((case.error for case in cases if case.error), None)
        return Probe(version=version, verdict="untestable", reason=problem or "nothing could be measured")
    medians: dict[str, float] = {case.operation: case.summary.median_s for case in tried if case.summary}
    parts = [f"{operation} {seconds:.3g} s" for operation, seconds in medians.items()]
    parts += [
        f"{len(case.failures)} of {_attempt_count(case)} failed: {case.failures[0]}" for case in tried if case.failures
    ]
    return Probe(
        version=version,
        verdict="good",
        reason=", ".join(parts),
        medians_s=medians,
        failed={case.operation: len(case.failures) / _attempt_count(case) for case in tried},
        findings=sorted({finding.code for case in cases for finding in case.findings}),
    )


def _attempt_count(case: Case) -> int:
    return len(case.trials_s) + len(case.failures)


def _is_measured(probe: Probe) -> bool:
    """Whether the release has meaningful measurements: most attempts succeeded."""
    return bool(probe.medians_s) and max(probe.failed.values(), default=0.0) <= MOST_FAILURES


def _select_criterion(good: Probe, bad: Probe) -> Criterion:
    more = {operation: share - good.failed.get(operation, 0.0) for operation, share in bad.failed.items()}
    failing = max(more, key=lambda operation: more[operation], default=None)
    if failing is not None and more[failing] >= CLEAR_SHARE:
        return Criterion(operation=failing, failing=(good.failed.get(failing, 0.0) + bad.failed[failing]) / 2)
    if not _is_measured(bad):
        raise LabError(f"{bad.version} can't be measured: {bad.reason}")
    # Findings about the instrument or the machine are no property of a release.
    only_bad = frozenset(bad.findings) - frozenset(good.findings) - INSTRUMENTS
    if only_bad:
        return Criterion(findings=only_bad)
    shared = [op for op in bad.medians_s if good.medians_s.get(op, 0.0) > 0]
    operation = max(shared, key=lambda op: bad.medians_s[op] / good.medians_s[op], default=None)
    if operation is None or bad.medians_s[operation] < CLEAR_RATIO * good.medians_s[operation]:
        raise UsageProblem(
            f"{good.version} and {bad.version} behave alike here ({good.reason}; {bad.reason}): "
            "there is nothing to search for. Another target, tool or --hold may tell them apart."
        )
    middle: float = (good.medians_s[operation] * bad.medians_s[operation]) ** 0.5
    return Criterion(operation=operation, threshold_s=middle)
