"""Tables of copies behind a balancer: the steps of the dialogue by policy, and the load."""

from __future__ import annotations

from collections.abc import Iterator

from mcpace.report.model.replicas import ReplicaLoad, ReplicasFacts
from mcpace.report.table import Table
from mcpace.report.words.quantities import clean, count
from mcpace.report.words.replicas import BROKEN_CALLS, EVENTS, LONGEST, POLICIES, STEPS, step_cell


def replica_tables(facts: ReplicasFacts) -> Iterator[Table]:
    """All tables of a test of replicas."""
    for revision in dict.fromkeys(step.revision for step in facts.steps):
        yield _steps_table(facts, revision)
    if facts.loads:
        yield _load_table(facts)


def _steps_table(facts: ReplicasFacts, revision: str) -> Table:
    steps = [step for step in facts.steps if step.revision == revision]
    by_place = {(step.event, step.step, step.policy): step for step in steps}
    policies = list(dict.fromkeys(step.policy for step in steps))
    rows: list[tuple[str, ...]] = []
    event = ""
    orders = list(EVENTS), list(STEPS)
    places = {(step.event, step.step) for step in steps}
    for place in sorted(places, key=lambda one: (orders[0].index(one[0]), orders[1].index(one[1]))):
        if place[0] != event:
            event = place[0]
            rows.append((f"{EVENTS[place[0]]}:", *("" for _ in policies)))
        cells = [step_cell(by_place.get((*place, policy))) for policy in policies]
        rows.append((f"  {STEPS[place[1]]}", *cells))
    seen = list(dict.fromkeys(clean(step.saw, LONGEST) for step in steps if step.saw))
    notes = [
        "lost: the copy refused the session of another copy; mcpace's client then began a new session. A client that "
        "does not begin one fails."
    ]
    notes = notes if any(step.lost for step in steps) else []
    broken = {step.event for step in steps if step.step == "in-flight" and step.failed}
    notes += [words for event, words in BROKEN_CALLS.items() if event in broken]
    notes += [f"Seen: {text}" for text in seen[:4]]
    return Table(f"Revision {clean(revision, 20)}", ("", *(POLICIES[one] for one in policies)), rows, notes=notes)


def _load_table(facts: ReplicasFacts) -> Table:
    first = facts.loads[0]
    rows: list[tuple[str, ...]] = [_load_row(one) for one in facts.loads]
    return Table(
        f"Load of {count(first.vus, 'user')} while copies are killed, added and replaced",
        ("", "calls", "failed", "standstill"),
        rows,
        f"{first.duration_s:g} s each",
        list(dict.fromkeys(f"No load: {clean(one.error, LONGEST)}." for one in facts.loads if one.error))[:4],
    )


def _load_row(load: ReplicaLoad) -> tuple[str, ...]:
    name = f"{clean(load.revision, 20)}, {POLICIES[load.policy]}"
    if load.error:
        return name, "–", "–", "–"
    return name, f"{load.calls:,}", f"{load.failed:,}", f"{load.standstill_s:g} s" if load.standstill_s else "none"
