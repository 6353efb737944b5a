"""The finding ``session-lost-behind-balancer``: what one copy keeps of a dialogue is unknown to the other copies.

In revisions with sessions that is the session. In later revisions it is the state that a copy seals and hands to the
client with a question: another copy needs the same key to open it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcpace.lab.load.settings import STATELESS_SINCE
from mcpace.report.model.replicas import Need, Policy, ReplicaFinding, ReplicaStep

SPREADING: tuple[Policy, ...] = ("round-robin", "least-connections")
"""Policies that never hold a session at one copy."""


def find_lost_sessions(steps: Sequence[ReplicaStep]) -> list[ReplicaFinding]:
    """One finding for each revision in which a copy refused what another copy had begun."""
    found = []
    for revision in dict.fromkeys(step.revision for step in steps):
        lost = [step for step in steps if step.revision == revision and _count_lost(step)]
        in_steady = [step for step in lost if step.event == "steady"]
        if not in_steady:
            # Sessions end with their copy at least: no other copy knows them.
            lost = [step for step in lost if step.lost]
        if not lost:
            continue
        needs: list[Need] = ["shared-key"]
        if revision < STATELESS_SINCE:
            works_by_session = not any(step.policy == "session" for step in in_steady)
            needs = ["shared-sessions", "affinity"] if in_steady and works_by_session else ["shared-sessions"]
        held = [step for step in lost if step.policy not in SPREADING and step.event != "steady"]
        found.append(
            ReplicaFinding(
                code="session-lost-behind-balancer",
                revision=revision,
                policies=list(dict.fromkeys(step.policy for step in in_steady)),
                events=list(dict.fromkeys(step.event for step in held)),
                lost=sum(_count_lost(step) for step in lost),
                requests=sum(step.requests for step in lost),
                saw=next((step.saw for step in lost if step.saw), ""),
                needs=needs,
            )
        )
    return found


def _count_lost(step: ReplicaStep) -> int:
    """Requests that failed since another copy answers. A question was answered before without a balancer, so its
    failure while all copies run is one."""
    if step.step == "question" and step.event == "steady" and step.revision >= STATELESS_SINCE:
        return step.failed
    return step.lost
