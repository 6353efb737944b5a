"""Import times of a Python server, from what its interpreter prints with ``-X importtime``."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field

from mcpace.report.model.start import ImportTime

REPORTING = {"PYTHONPROFILEIMPORTTIME": "1"}
"""Environment in which Python prints its import times to stderr."""
LINE = re.compile(rb"import time: +(\d+) \| +(\d+) \| ( *)(\S+)")
HEADER = b"import time: self [us] | cumulative | imported package"
FIRST = b"site"
"""The last module that the interpreter imports for itself."""
STANDARD_LIBRARY = "the standard library"
MOST_PACKAGES = 8


@dataclass
class ImportTimes:
    """Import times of one start."""

    interpreter_s: float = 0.0
    """Imports of the interpreter itself."""
    packages: list[ImportTime] = field(default_factory=list)
    """Times by package, longest first, without those of the packages that they import."""

    @property
    def imports_s(self) -> float:
        """Time of all imports of the program."""
        return sum(package.seconds for package in self.packages)


def parse_import_times(output: bytes) -> ImportTimes | None:
    """Reads the import times of the process with the longest ones; ``None`` where there are none."""
    found = [times for part in output.split(HEADER)[1:] if (times := _parse_process(part)) is not None]
    return max(found, key=lambda times: times.imports_s, default=None)


def _parse_process(part: bytes) -> ImportTimes | None:
    lines = [(int(match[1]) / 1e6, match[4]) for match in LINE.finditer(part)]
    own = next((number for number, (_, name) in enumerate(lines) if name == FIRST), None)
    if own is None:
        return None
    packages: dict[str, float] = {}
    for seconds, name in lines[own + 1 :]:
        package = name.decode(errors="replace").partition(".")[0]
        package = STANDARD_LIBRARY if package in sys.stdlib_module_names else package
        packages[package] = packages.get(package, 0.0) + seconds
    longest = sorted(packages.items(), key=lambda one: -one[1])
    kept = [ImportTime(name=name, seconds=seconds) for name, seconds in longest[:MOST_PACKAGES]]
    if rest := sum(seconds for _, seconds in longest[MOST_PACKAGES:]):
        kept.append(ImportTime(name="others", seconds=rest))
    return ImportTimes(sum(seconds for seconds, _ in lines[: own + 1]), kept)
