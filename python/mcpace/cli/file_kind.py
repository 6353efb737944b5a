"""Detection of files given to the wrong command, with the command that reads them.

Design constraint: The kind is detected only after a reader has refused the file, from its first bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mcpace import _core
from mcpace.lab.errors import UsageProblem
from mcpace.lab.files import is_unicode, refuse_pipe

if TYPE_CHECKING:
    from mcpace.report.model.run import Run

ZSTD = b"\x28\xb5\x2f\xfd"
RECORDING, RUN = b'{"format":"mcpace.recording/', b'"schema": "mcpace.run/'
LOOKED_AT = 4_096


def load_run(path: Path) -> Run:
    """Loads a saved run.

    Raises :class:`UsageProblem` where it can't be read, with the command that reads the file.
    """
    # Imported late: exporting a load imports this file, and importing a run's models would delay the load.
    from mcpace.report.model.run import Run, RunFormatError

    refuse_pipe(path)
    try:
        return Run.load(path)
    except OSError as error:
        raise UsageProblem(f"cannot read {path}: {error.strerror}") from error
    except RunFormatError as error:
        if _is_recording(_first_bytes(path)):
            raise UsageProblem(f"{path} is a recording, not a run: mcpace explain FILE tells what is in it") from error
        raise UsageProblem(f"{path} is {error}") from error


def load_recording(path: Path) -> _core.Recording:
    """Loads a recording.

    Raises :class:`UsageProblem` where it can't be read, with the command that reads the file.
    """
    if not is_unicode(str(path)):
        raise UsageProblem(f"cannot read {str(path)!r}: the path of a recording must be UTF-8 text")
    refuse_pipe(path)
    try:
        return _core.Recording.load(str(path))
    except _core.UsageProblem as problem:
        raise recording_problem(problem, [path]) from problem


def recording_problem(problem: Exception, paths: list[Path]) -> UsageProblem:
    """Error for the first file that is not a recording."""
    for path in paths:
        beginning = _first_bytes(path)
        if RUN in beginning:
            return UsageProblem(f"{path} is a run, not a recording: mcpace report FILE shows it")
        if not _is_recording(beginning) and str(problem).startswith("not a recording"):
            return UsageProblem(f"{path} is {problem}")
    return UsageProblem(str(problem))


def _is_recording(beginning: bytes) -> bool:
    return beginning.startswith(ZSTD) or beginning.replace(b" ", b"").startswith(RECORDING)


def _first_bytes(path: Path) -> bytes:
    try:
        if not path.is_file():  # a pipe would wait for a program that writes to it
            return b""
        with path.open("rb") as file:
            return file.read(LOOKED_AT)
    except OSError:
        return b""
