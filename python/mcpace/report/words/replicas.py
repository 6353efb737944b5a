"""Words for copies of a server behind a balancer: the verdict, the steps, and the finding."""

from __future__ import annotations

from mcpace.report.model.replicas import Event, Kept, Need, Policy, ReplicaFinding, ReplicasFacts, ReplicaStep, StepName
from mcpace.report.words.quantities import clean, count, join_words

LONGEST = 160
POLICIES: dict[Policy, str] = {
    "round-robin": "round robin",
    "least-connections": "least conn.",
    "session": "by session",
    "cookie": "by cookie",
}
EVENTS: dict[Event, str] = {
    "steady": "all copies run",
    "killed": "a copy was killed",
    "added": "a copy was added",
    "rolled": "all copies were replaced",
}
STEPS: dict[StepName, str] = {
    "connect": "connect",
    "in-flight": "call in flight",
    "task-in-flight": "task in flight",
    "list": "tools/list",
    "call": "tools/call",
    "question": "elicitation",
    "resume": "resumed stream",
    "task": "task",
    "listen": "subscription",
    "change": "list changed",
    "reconnect": "new session",
}
NEEDS: dict[Need, str] = {
    "shared-sessions": "Keep sessions in a store that all copies share, or serve without sessions (revision "
    "2026-07-28).",
    "shared-key": "Give all copies the same key for the state that they hand to the client, as by "
    "request_state_security in the Python SDKs.",
    "shared-streams": "Keep the events of streams in a store that all copies share (the SDKs call it an event store).",
    "shared-tasks": "Keep tasks in a store that all copies share.",
    "shared-changes": "Pass the changes of lists on to all copies, by a channel that they share.",
    "affinity": "Until then, let the balancer choose the copy by the header Mcp-Session-Id: sessions and their streams "
    "are then lost only with their copy.",
}
KEPT: dict[Kept, str] = {
    "sessions": "does not know the sessions of another copy",
    "state": "can't open the state that another copy gave to the client with its question",
    "streams": "does not have the events of another copy's streams",
    "tasks": "does not know the tasks of another copy",
    "changes": "does not pass on the changes of another copy's lists",
}
BROKEN_CALLS: dict[Event, str] = {
    "killed": "A call that waits at a killed copy fails. A client can repeat it if the tool can be repeated.",
    "rolled": "The server breaks its calls off at SIGTERM, or needs more than 3 s for them: let it finish them first.",
}


def sentences(facts: ReplicasFacts) -> list[str]:
    """The verdict: what works under every policy, and each finding."""
    if not facts.steps:
        return ["Nothing was tried."]
    name = clean(facts.server, 60) or "The server"
    told = []
    for revision in dict.fromkeys(step.revision for step in facts.steps):
        steps = [step for step in facts.steps if step.revision == revision]
        broken = [step for step in steps if step.failed or step.lost]
        subject = f"{name} as {count(facts.copies, 'copy', 'copies')}, revision {clean(revision, 20)}"
        if not broken:
            told.append(f"{subject}: all requests work, also while copies are killed, added and replaced.")
            continue
        if all(step.step in ("in-flight", "task-in-flight") for step in broken):
            told.append(f"{subject}: all requests work but those in flight at a copy that ends.")
            continue
        in_steady = join_words([POLICIES[one] for one in _policies(broken, "steady")])
        text = (
            f"{_broken_steps(broken)} fail behind a balancer ({in_steady}) while all copies run"
            if in_steady
            else f"requests work while all copies run, and fail when {_broken_events(broken)}"
        )
        told.append(f"{subject}: {text}.")
    told += [finding_words(one) for one in facts.findings]
    return told


def _policies(steps: list[ReplicaStep], event: Event) -> list[Policy]:
    return list(dict.fromkeys(step.policy for step in steps if step.event == event))


def _broken_steps(steps: list[ReplicaStep]) -> str:
    return join_words([STEPS[one] for one in dict.fromkeys(step.step for step in steps if step.event == "steady")])


def _broken_events(steps: list[ReplicaStep]) -> str:
    return join_words([EVENTS[one] for one in dict.fromkeys(step.event for step in steps)])


def finding_words(finding: ReplicaFinding) -> str:
    """The finding in one paragraph: cause, evidence, advice."""
    seen = f" ({clean(finding.saw, LONGEST)})" if finding.saw and finding.kept != "changes" else ""
    noun, failed = ("notification", "did not come") if finding.kept == "changes" else ("request", "were refused")
    told = [
        f"{finding.code}: in revision {clean(finding.revision, 20)}, a copy {KEPT[finding.kept]}: {finding.lost:,} of "
        f"{count(finding.requests, noun)} {failed}{seen}."
    ]
    return " ".join([*told, *(NEEDS[need] for need in finding.needs)])


def step_cell(step: ReplicaStep | None) -> str:
    """The outcome of a step: ``works``, or how many of its requests failed, or lost their session."""
    if step is None:
        return "–"
    if step.failed:
        return f"{step.failed}/{step.requests} failed"
    if step.lost:
        return f"{step.lost}/{step.requests} lost"
    return "works"
