"""The finding ``session-lost-behind-balancer``: what one copy keeps of a dialogue is unknown to the other copies.

In revisions with sessions that is the session, and the events of its streams. In later revisions it is the state that a
copy seals and hands to the client with a question (another copy needs the same key to open it), and tasks. In all
revisions it is the changes that a copy announces. Each of them worked at one copy alone before.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcpace.lab.load.settings import STATELESS_SINCE
from mcpace.report.model.replicas import Kept, Need, Policy, ReplicaFinding, ReplicaStep, StepName

SPREADING: tuple[Policy, ...] = ("round-robin", "least-connections")
"""Policies that never hold a session at one copy."""
KEPT_BY_STEP: dict[StepName, tuple[Kept, Need]] = {
    "resume": ("streams", "shared-streams"),
    "task": ("tasks", "shared-tasks"),
    "change": ("changes", "shared-changes"),
}
"""Thing that a copy keeps for itself where the step fails while all copies run, and what would help."""


def find_lost_sessions(steps: Sequence[ReplicaStep]) -> list[ReplicaFinding]:
    """One finding for each revision and each thing that a copy keeps for itself."""
    found = []
    for revision in dict.fromkeys(step.revision for step in steps):
        of_revision = [step for step in steps if step.revision == revision]
        found += _lost_sessions(revision, of_revision)
        for name, (kept, need) in KEPT_BY_STEP.items():
            failed = [step for step in of_revision if (step.step, step.event) == (name, "steady") and step.failed]
            needs: list[Need] = [need]
            tried = [step for step in of_revision if (step.step, step.event) == (name, "steady")]
            if kept == "streams" and _works_by_session(tried, failed):
                needs.append("affinity")
            if failed:
                lost, requests = (sum(getattr(step, count) for step in failed) for count in ("failed", "requests"))
                found.append(_finding(kept, revision, failed, lost=lost, requests=requests, needs=needs))
    return found


def _lost_sessions(revision: str, steps: Sequence[ReplicaStep]) -> list[ReplicaFinding]:
    """The finding where a copy refused sessions of another copy, or the state of its questions."""
    lost = [step for step in steps if _count_lost(step)]
    in_steady = [step for step in lost if step.event == "steady"]
    if not in_steady:
        # Sessions end with their copy at least: no other copy knows them.
        lost = [step for step in lost if step.lost]
    if not lost:
        return []
    counts = {"lost": sum(map(_count_lost, lost)), "requests": sum(step.requests for step in lost)}
    if revision >= STATELESS_SINCE:
        return [_finding("state", revision, lost, **counts, needs=["shared-key"])]
    works = bool(in_steady) and _works_by_session(steps, in_steady)
    needs: list[Need] = ["shared-sessions", "affinity"] if works else ["shared-sessions"]
    return [_finding("sessions", revision, lost, **counts, needs=needs)]


def _works_by_session(tried: Sequence[ReplicaStep], failed: Sequence[ReplicaStep]) -> bool:
    """Whether the policy ``session`` was tried and is not among the steps that failed."""
    return any(step.policy == "session" for step in tried) and not any(step.policy == "session" for step in failed)


def _finding(
    kept: Kept, revision: str, steps: Sequence[ReplicaStep], *, lost: int, requests: int, needs: list[Need]
) -> ReplicaFinding:
    held = [step for step in steps if step.policy not in SPREADING and step.event != "steady"]
    return ReplicaFinding(
        code="session-lost-behind-balancer",
        kept=kept,
        revision=revision,
        policies=list(dict.fromkeys(step.policy for step in steps if step.event == "steady")),
        events=list(dict.fromkeys(step.event for step in held)),
        lost=lost,
        requests=requests,
        saw=next((step.saw for step in steps if step.saw), ""),
        needs=needs,
    )


def _count_lost(step: ReplicaStep) -> int:
    """Requests that failed since another copy answers. A question was answered before without a balancer, so its
    failure while all copies run is one."""
    if step.step == "question" and step.event == "steady" and step.revision >= STATELESS_SINCE:
        return step.failed
    return step.lost
