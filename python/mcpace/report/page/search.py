"""A bisection for the page: the tested releases, in the order of the search and in that of the releases."""

from __future__ import annotations

from mcpace.report.groups import order_operations
from mcpace.report.model.run import Bisection, Probe, Run
from mcpace.report.page.model import ProbeShown, SearchShown
from mcpace.report.verdict import release_order
from mcpace.report.words.quantities import clean


def search_of(run: Run) -> SearchShown | None:
    """The bisection of a run; ``None`` for other runs."""
    search = run.bisection
    if search is None:
        return None
    names = order_operations(name for probe in search.probes for name in probe.medians_s)
    versions = [probe.version for probe in search.probes]
    return SearchShown(
        words=_search_words(search),
        operations=[clean(name, 30) for name in names],
        probes=[_probe_view(probe, names) for probe in search.probes],
        ordered=sorted(range(len(versions)), key=lambda number: release_order(versions[number])),
    )


def _search_words(search: Bisection) -> str:
    told = " ".join(clean(search.criterion).split()).rstrip(".")
    return (
        f"{clean(search.sdk, 40)} at {clean(search.target, 120)}, from {clean(search.good, 40)} (good) to "
        f"{clean(search.bad, 40)} (bad): {len(search.probes)} of {search.releases} releases were run, both ends "
        f"included.{f' Told apart by: {told}.' if told else ''}"
    )


def _probe_view(probe: Probe, names: tuple[str, ...]) -> ProbeShown:
    causes = ", ".join(clean(code, 60) for code in probe.findings)
    return ProbeShown(
        version=clean(probe.version, 40),
        verdict=probe.verdict,
        medians_s=[probe.medians_s.get(name) for name in names],
        note=clean(probe.reason) if probe.verdict == "untestable" or any(probe.failed.values()) else causes,
    )
