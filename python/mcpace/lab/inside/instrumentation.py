"""The interface of what instruments the programs of one language runtime.

Design constraint: Programs of the server write the evidence. Damaged evidence ends no run: its source is missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from mcpace import _core
from mcpace.lab.errors import LabError

LONGEST_REASON = 600

Variables = Sequence[tuple[str, str]]
"""Environment variables of a process that is to be started: names and values."""


EXPORTER_SETTINGS = (
    "OTEL_SDK_DISABLED",
    "OTEL_TRACES_EXPORTER",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
)
"""Variables that say where a program sends its spans (OpenTelemetry Specification, "Environment Variables")."""


def user_exporter_settings(own: Variables) -> list[str]:
    """The names of the variables by which the user decided where the spans of a process go.

    Such a process is not instrumented for spans: its own would no longer reach the user's collector, or the ones of the
    instrumentation would.
    """
    environment = {**os.environ, **dict(own)}
    return [name for name in EXPORTER_SETTINGS if environment.get(name)]


@contextmanager
def missing_on_failure(source: str, label: str, add_missing: Callable[[str, str], object]) -> Iterator[None]:
    """Calls ``add_missing`` with the source and the reason where the ``with`` block fails, and raises nothing.

    ``label`` names the evidence in the reason.
    """
    try:
        yield
    except LabError as problem:
        add_missing(source, str(problem))
    except Exception as error:
        reason = f"{label} can't be read: {type(error).__name__}: {error}"
        add_missing(source, without_surrogates(reason)[:LONGEST_REASON])


def without_surrogates(text: str) -> str:
    """The text with question marks for what UTF-8 can't hold. JSON can."""
    return text.encode("utf-8", "replace").decode()


class Instrumentation(Protocol):
    """Instruments the programs of one runtime by environment variables, and collects what they leave."""

    def variables(self, own: Variables) -> list[tuple[str, str]]:
        """Returns variables for a process, in addition to ``own``, which the user gave.

        A variable that the user has set already keeps its effect: the new value contains the old one.
        """
        ...

    def close(self) -> None:
        """Ends the collection. The processes that were started with the variables have ended. Closing twice is
        harmless.
        """
        ...

    def has_evidence(self) -> bool:
        """Whether a program of this runtime was seen, once the collection has ended."""
        ...

    def add_to(self, recording: _core.Recording) -> None:
        """Adds what was collected, and the sources that gave nothing, each with the reason."""
        ...


@runtime_checkable
class SamplesProcesses(Protocol):
    """An instrumentation that samples processes from outside, and can pause meanwhile."""

    def watch(self, pid: int) -> None:
        """Samples a process and its descendants; of this process, the descendants only. Call it once."""
        ...

    def pause(self) -> None:
        """Takes no samples until :meth:`resume`."""
        ...

    def resume(self) -> None:
        """Goes on sampling."""
        ...

    def end_sampling(self) -> None:
        """Takes the last sample, while the processes run. Ending twice is harmless."""
        ...
