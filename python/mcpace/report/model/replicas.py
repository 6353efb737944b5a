"""The part of a Run that a test of replicas adds: each step of a dialogue under each way of balancing.

Design constraint: data only. The text of an answer comes from the server and is bounded.
"""

from __future__ import annotations

from typing import Literal

from mcpace.report.model.base import Model, Number, Whole

Policy = Literal["round-robin", "least-connections", "session", "cookie"]
"""How the balancer chooses a copy. ``session``: by the id of the session; ``cookie``: by its own cookie."""
Event = Literal["steady", "killed", "added", "rolled"]
"""Event before the step: none, a copy was killed, a copy was added, all copies were replaced."""
StepName = Literal[
    "connect",
    "in-flight",
    "task-in-flight",
    "list",
    "call",
    "question",
    "resume",
    "task",
    "listen",
    "change",
    "reconnect",
]
"""``in-flight``: a call that waits at a copy while the copy is killed or replaced; ``task-in-flight``: a task that runs
meanwhile. ``resume``: a call whose stream is broken off and resumed. ``task``: a call that is followed as a task.
``change``: a notification of a changed list, in each session. ``reconnect``: a new session and a call in it."""
Kept = Literal["sessions", "state", "streams", "tasks", "changes"]
"""Thing that a copy keeps for itself: sessions, the sealed state of its questions, the events of its streams, tasks,
and changes of its lists."""
Need = Literal["affinity", "shared-sessions", "shared-key", "shared-streams", "shared-tasks", "shared-changes"]
"""Change that would make a step work; the words are in :mod:`mcpace.report.words.replicas`."""


class ReplicaStep(Model):
    """One step of a dialogue, in one revision, under one policy."""

    revision: str
    policy: Policy
    event: Event
    step: StepName
    requests: Whole = 0
    """Number of requests that the client made."""
    failed: Whole = 0
    """Number of requests that failed in the client."""
    lost: Whole = 0
    """Number of requests that a copy refused since it did not know their session. mcpace's client then begins a new
    session, and such a request does not fail in it."""
    saw: str = ""
    """The first failure or refusal, as the client saw it."""


class ReplicaLoad(Model):
    """Load while copies are killed, added and replaced, under one policy."""

    policy: Policy
    revision: str
    vus: Whole
    duration_s: Number
    calls: Whole = 0
    """Number of calls that succeeded."""
    failed: Whole = 0
    standstill_s: Number = 0.0
    """Longest sequence of whole seconds without a successful reply."""
    error: str = ""
    """Reason why there was no load."""


class ReplicaFinding(Model):
    """A cause of failures that a change of the server or of the balancer would remove."""

    code: Literal["session-lost-behind-balancer"]
    kept: Kept = "sessions"
    revision: str
    policies: list[Policy]
    """Policies under which sessions are lost while all copies run."""
    events: list[Event]
    """Events after which sessions are lost under a policy that holds a session at its copy."""
    lost: Whole
    """Number of requests that failed or were refused since another copy keeps what they need."""
    requests: Whole
    saw: str = ""
    needs: list[Need] = []


class ReplicasFacts(Model):
    """Copies of a server behind a balancer."""

    copies: Whole
    server: str = ""
    steps: list[ReplicaStep] = []
    loads: list[ReplicaLoad] = []
    findings: list[ReplicaFinding] = []
    not_tried: list[str] = []
    """Sentences on what could not be tried."""
