"""The handler layer beside djangorestframework-mcp-server's: ``double(n)`` on each, by ``mcpace layers``.

Subjects take turns, turn after turn, there and back, so that the machine's drift hits all alike; a turn is a short run
of ``mcpace layers``. Figures are medians over all batches of all turns; ratios are taken turn by turn, and their median
is told. A run of everything also writes ``latest.json`` and the table of README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))

from layering import DRF, DRF_OLD, MCP_1, MCP_2, MCPACE, MCPACE_DJANGO, SERVERS, Served  # noqa: E402
from mcpace import _core  # noqa: E402

SUBJECTS: dict[str, Served] = {
    "mcpace": MCPACE,
    "mcpace-django": MCPACE_DJANGO,
    DRF.name: DRF,
    DRF_OLD.name: DRF_OLD,
    "mcp-2": MCP_2,
    "mcp-1": MCP_1,
}
LAYERS = ("direct", "handler", "in-process", "socket")
TARGETS = (
    ("handler over direct, plain Python with pydantic", "mcpace", "handler", 5e-6),
    ("handler over direct, DRF input serializer, atomic off", "mcpace-django", "handler", 40e-6),
    ("real socket over direct, plain Python, one connection", "mcpace", "socket", 40e-6),
)
TURN_LIMIT_S = 300
TABLE = re.compile(r"(<!-- table -->\n).*(<!-- end of table -->)", re.DOTALL)

Turn = dict[str, list[float]]
"""By layer the batches of one subject's turn, seconds a call."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", help=f"of {', '.join(SUBJECTS)}, with commas; writes no files")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=8, help="batches of each layer in a turn")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(SUBJECTS)
    if unknown := set(names) - set(SUBJECTS):
        sys.exit(f"no such subject: {', '.join(sorted(unknown))}")
    if _core.DEBUG and not options.only:
        sys.exit("mcpace's compiled part is a debug build, whose figures mean nothing: run make build first")
    turns: dict[str, list[Turn]] = {name: [] for name in names}
    for number in range(options.turns):
        for name in names if number % 2 == 0 else names[::-1]:
            print(f"turn {number + 1}/{options.turns} · {name}", file=sys.stderr)
            turns[name].append(turn(SUBJECTS[name], options.rounds))
    document = {
        "measured": datetime.now(UTC).replace(microsecond=0).isoformat(),
        "machine": {"cpu": cpu(), "cores": os.cpu_count(), "system": platform.platform()},
        "python": platform.python_version(),
        "turns": options.turns,
        "batches_a_turn": options.rounds,
        "rows": [row for name in names for row in rows(name, turns[name])],
        "targets": targets(turns),
    }
    text = table(document)
    print(text)
    if not options.only:
        (HERE / "latest.json").write_text(json.dumps(document, indent=1) + "\n")
        readme = HERE / "README.md"
        readme.write_text(TABLE.sub(lambda match: f"{match[1]}{text}\n{match[2]}", readme.read_text()))
    return 0


def turn(served: Served, rounds: int) -> Turn:
    """One short run."""
    command = [ROOT / ".venv" / "bin" / "mcpace", "layers", served.place, "--tool", "double", "--args", '{"n": 21}']
    command += ["--python", served.interpreter(), "--rounds", str(rounds), "--warm-up", "300ms", "--json"]
    environment = {**os.environ, **served.environment}
    done = subprocess.run(
        command, cwd=SERVERS, env=environment, capture_output=True, text=True, timeout=TURN_LIMIT_S, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{served.name}: {done.stderr.strip()}")
    run = json.loads(done.stdout)
    for case in run["cases"]:
        if case["unsupported"] or case["error"]:
            sys.exit(f"{served.name}, {case['layer']['name']}: {case['unsupported'] or case['error']}")
    return {case["layer"]["name"]: case["trials_s"] for case in run["cases"]}


def rows(name: str, turns: list[Turn]) -> list[dict[str, Any]]:
    """A subject's layers over all turns."""
    found = []
    for layer in LAYERS:
        batches = [value for one in turns for value in one[layer]]
        low, median, high = statistics.quantiles(batches, n=4, method="inclusive")
        over = [statistics.median(one[layer]) - statistics.median(one["direct"]) for one in turns]
        found.append(
            {
                "name": name,
                "layer": layer,
                "median_s": median,
                "low_s": low,
                "high_s": high,
                "over_direct_s": statistics.median(over),
                "over_direct_turns_s": [min(over), max(over)],
            }
        )
    return found


def targets(turns: dict[str, list[Turn]]) -> list[dict[str, Any]]:
    """What was to be reached, and what came."""
    told = []
    for what, name, layer, limit_s in TARGETS:
        if name in turns:
            over = statistics.median(over_direct(one, layer) for one in turns[name])
            told.append({"what": what, "limit_s": limit_s, "actual_s": over, "met": over <= limit_s})
    ours, theirs = turns.get("mcpace-django"), turns.get(DRF.name)
    if ours and theirs:
        pairs = zip(ours, theirs, strict=True)
        ratio = statistics.median(over_direct(b, "handler") / over_direct(a, "handler") for a, b in pairs)
        what = "handler over direct with a DRF serializer: djangorestframework-mcp-server 0.54.0 ÷ mcpace.django"
        told.append({"what": what, "limit": 25, "actual": ratio, "met": ratio >= 25})
    return told


def over_direct(one: Turn, layer: str) -> float:
    return statistics.median(one[layer]) - statistics.median(one["direct"])


def table(document: dict[str, Any]) -> str:
    """Microseconds, as Markdown."""
    lines = ["| µs a call | direct | handler | in-process | socket |", "|---|---|---|---|---|"]
    names = list(dict.fromkeys(row["name"] for row in document["rows"]))
    for name in names:
        cells = [shown(row) for row in document["rows"] if row["name"] == name]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "| to reach | | came |", "|---|---|---|"]
    for one in document["targets"]:
        limit = f"≤ {one['limit_s'] * 1e6:g} µs" if "limit_s" in one else f"≥ {one['limit']} ×"
        came = f"{one['actual_s'] * 1e6:.1f} µs" if "limit_s" in one else f"{one['actual']:.1f} ×"
        lines.append(f"| {one['what']} | {limit} | {came}{'' if one['met'] else ' (missed)'} |")
    machine = document["machine"]
    lines += [
        "",
        f"Medians of {document['turns']} × {document['batches_a_turn']} batches, quartiles in brackets; "
        f"{document['measured']}, {machine['cores']} cores, {machine['cpu']}, Python {document['python']}.",
    ]
    return "\n".join(lines)


def shown(row: dict[str, Any]) -> str:
    digits = 2 if row["median_s"] < 1e-6 else 1 if row["median_s"] < 100e-6 else 0
    low, median, high = (f"{row[name] * 1e6:,.{digits}f}" for name in ("low_s", "median_s", "high_s"))
    return f"{median} ({low}–{high})"


def cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    sys.exit(main())
