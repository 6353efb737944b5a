"""Shows an author's exception without mcpace's frames.

Frames of mcpace and of the import machinery are removed everywhere. If mcpace raised because of the author's call, the
last line shown is the author's.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

# The path as imported and the resolved path, which differ if the package is behind a link.
OURS = tuple(f"{place.parents[2]}/" for place in (Path(__file__), Path(__file__).resolve()))
MACHINERY = ("<frozen ", "<string>")


def author_traceback(error: BaseException) -> str:
    """The traceback of ``error`` and its causes, without mcpace's frames. Ends with a line feed."""
    _cut_frames(error, set())
    return "".join(traceback.format_exception(error))


def _cut_frames(error: BaseException | None, seen: set[int]) -> None:
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    # A cause is shown only if the author's code took part in it.
    if error.__context__ is not None and not _author_frames(error.__context__.__traceback__):
        error.__suppress_context__ = True
        if error.__cause__ is error.__context__:
            error.__cause__ = None
    error.__traceback__ = _rebuild_traceback(_author_frames(error.__traceback__))
    _cut_frames(error.__cause__, seen)
    _cut_frames(error.__context__, seen)
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            _cut_frames(one, seen)


def _author_frames(trace: TracebackType | None) -> list[TracebackType]:
    found = []
    while trace is not None:
        if not _is_ours(trace.tb_frame.f_code.co_filename):
            found.append(trace)
        trace = trace.tb_next
    return found


def _rebuild_traceback(frames: list[TracebackType]) -> TracebackType | None:
    rest: TracebackType | None = None
    for frame in reversed(frames):
        rest = TracebackType(rest, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return rest


def _is_ours(filename: str) -> bool:
    # importlib has the frame of import_module, which is not frozen.
    return (
        filename.startswith((*OURS, *MACHINERY))
        or "/importlib/" in filename
        or filename.endswith(("/runpy.py", "/asyncio/runners.py", "/asyncio/base_events.py"))
    )
