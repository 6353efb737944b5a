"""Rounds in which several sessions take turns."""

from __future__ import annotations

from collections.abc import Sequence

from mcpace.lab.clients.measure import Session
from mcpace.lab.progress import Progress


def run_rounds(sessions: Sequence[Session], count: int, progress: Progress, where: str = "") -> None:
    """Runs each session once in every round, in alternating order, so that drift of the machine affects all alike.

    All sessions call the tool of the first session.
    """
    for number in range(1, count + 1):
        for session in sessions if number % 2 else sessions[::-1]:
            if not session.given_up:
                session.preferred_tool = session.preferred_tool or (sessions[0].tool.name if sessions[0].tool else None)
                place = f"{session.facts.target} · {where}".rstrip(" ·")
                session.run_round(progress, f"{place} · round {number}/{count}")
