# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "aiohttp==3.14.5",
#   "beautifulsoup4==4.15.0",
#   "fpdf2==2.8.9",
#   "hiredis==3.5.0",
#   "httpx==0.28.1",
#   "jsonschema==4.26.0",
#   "jsonschema-rs==0.61.0",
#   "openpyxl==3.1.5",
#   "orjson==3.13.0",
#   "pypdf==7.1.1",
#   "pypdfium2==5.15.2",
#   "python-calamine==0.9.1",
#   "python-dateutil==4.0.0",
#   "PyYAML==6.0.4",
#   "rapidfuzz==3.14.6",
#   "redis==8.1.0",
#   "requests==2.34.2",
#   "selectolax==1.0.2",
#   "urllib3==2.8.0",
# ]
# ///
"""Processor time of libraries beside quicker ones with the same use: the table of `costly-library`.

Each round measures one library and then the other, in one process, with data that both get. The factor is the median of
the ratios. `--write` replaces alternatives.json beside the rule of `costly-library` with the pairs whose factor is
at least 1.5.
"""

from __future__ import annotations

import asyncio
import datetime
import importlib.metadata
import json
import platform
import statistics
import sys
import time
from pathlib import Path

from cases import CASES, Case, Use

TABLE = Path(__file__).parents[2] / "crates" / "explain" / "src" / "findings" / "inside" / "alternatives.json"
ROUNDS = 9
ROUND_S = 0.3
"""Processor time of one library in one round, nearly."""
LEAST_FACTOR = 1.5


async def processor_time(use: Use, repeats: int) -> float:
    """Seconds of processor time that one use takes."""
    begin = time.process_time()
    for _ in range(repeats):
        result = use()
        if asyncio.iscoroutine(result):
            await result
    return (time.process_time() - begin) / repeats


async def measure(case: Case) -> tuple[float, float, float]:
    """Quartiles of the factor: library ÷ alternative."""
    async with case.prepare() as (library, alternative):
        counts = []
        for use in (library, alternative):
            await processor_time(use, 1)
            counts.append(max(1, round(ROUND_S / max(await processor_time(use, 2), 1e-6))))
        ratios = []
        for _ in range(ROUNDS):
            times = [
                await processor_time(use, count) for use, count in zip((library, alternative), counts, strict=True)
            ]
            ratios.append(times[0] / times[1])
    lower, median, upper = statistics.quantiles(ratios, n=4)
    return lower, median, upper


def version(package: str) -> str:
    """The release that was measured; that of Python for its own library."""
    return importlib.metadata.version(package) if package else platform.python_version()


def row(case: Case, factor: float) -> dict[str, object]:
    """The entry of the table."""
    packages = case.packages or (case.library, case.alternative)
    return {
        "language": "python",
        "library": case.library,
        "version": version(packages[0]),
        "modules": case.modules,
        "seen_in": case.seen_in,
        "through": case.through,
        "alternative": case.alternative,
        "alternative_version": version(packages[1]),
        "use": case.use,
        "factor": float(f"{factor:.2g}"),
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "runtime": f"Python {platform.python_version()}",
    }


async def main() -> int:
    """Prints the factors; with `--write`, writes the table as well."""
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    rows = []
    print(f"{'library':<16} {'alternative':<24} {'factor':>7} {'quartiles':>15}  use")
    for case in CASES:
        if names and case.library not in names:
            continue
        lower, factor, upper = await measure(case)
        quartiles = f"{lower:.2f} to {upper:.2f}"
        print(f"{case.library:<16} {case.alternative:<24} {factor:>7.2f} {quartiles:>15}  {case.use}", flush=True)
        if factor >= LEAST_FACTOR:
            rows.append(row(case, factor))
    if "--write" in sys.argv and not names:
        TABLE.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
