"""The handler layer beside djangorestframework-mcp-server's: ``double(n)`` on each, by ``mcpace layers``.

Subjects take turns, turn after turn, there and back, so that the machine's drift hits all alike; a turn is a short run
of ``mcpace layers``, with cores kept awake unless told otherwise (``awake.py``). Figures are medians over all batches
of all turns; ratios are taken turn by turn, and their median is told. Then what such a server does under load
(``throughput.py``), and how often an issuer is asked about tokens (``introspection.py``). A run of everything also
writes ``latest.json`` and the tables of README.md beside this file.
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
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import introspection  # noqa: E402
import throughput  # noqa: E402
from awake import kept_awake  # noqa: E402
from table import table  # noqa: E402

from mcpace import _core  # noqa: E402
from support.layering import (  # noqa: E402
    DRF,
    DRF_OLD,
    MCP_1,
    MCP_2,
    MCPACE,
    MCPACE_DJANGO,
    MCPACE_GUARDED,
    MCPACE_TRACED,
    SERVERS,
    Served,
)

SUBJECTS: dict[str, Served] = {
    "mcpace": MCPACE,
    "mcpace-guarded": MCPACE_GUARDED,
    "mcpace-traced": MCPACE_TRACED,
    "mcpace-django": MCPACE_DJANGO,
    DRF.name: DRF,
    DRF_OLD.name: DRF_OLD,
    "mcp-2": MCP_2,
    "mcp-1": MCP_1,
}
LAYERS = ("direct", "handler", "in-process", "socket")
THROUGHPUT, INTROSPECTION = "throughput", "introspection"
PARTS = (*SUBJECTS, THROUGHPUT, INTROSPECTION)
TARGETS = (
    ("a plain Python function: `handler` − `direct`", "mcpace", "handler", 5e-6),
    ("a DRF serializer, without a transaction: `handler` − `direct`", "mcpace-django", "handler", 40e-6),
    ("a plain Python function, one connection: `socket` − `direct`", "mcpace", "socket", 40e-6),
)
TURN_LIMIT_S = 300
TABLE = re.compile(r"(<!-- table -->\n).*(<!-- end of table -->)", re.DOTALL)

Turn = dict[str, list[float]]
"""The batches of one subject's turn by layer, in seconds per call."""


def main() -> int:
    options = arguments()
    names = options.only.split(",") if options.only else list(PARTS)
    if unknown := set(names) - set(PARTS):
        sys.exit(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    is_whole = not (options.only or options.quick or options.asleep)
    if _core.DEBUG and is_whole:
        sys.exit("mcpace's compiled part is a debug build, whose figures mean nothing: run make build first")
    try:
        document = measured(names, options)
    except RuntimeError as problem:
        sys.exit(str(problem))
    text = table(document)
    print(text)
    if is_whole:
        (HERE / "latest.json").write_text(json.dumps(document, indent=1) + "\n")
        readme = HERE / "README.md"
        readme.write_text(TABLE.sub(lambda match: f"{match[1]}{text}\n{match[2]}", readme.read_text()))
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", help=f"of {', '.join(PARTS)}, with commas; writes no files")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=8, help="batches of each layer in a turn")
    parser.add_argument("--load-s", type=float, default=5.0, help="seconds of load in a turn")
    parser.add_argument("--asleep", action="store_true", help="let cores sleep between calls: writes no files")
    parser.add_argument("--quick", action="store_true", help="all of it, as short as can be: writes no files")
    options = parser.parse_args()
    if options.quick:
        options.turns, options.rounds, options.load_s = 2, 2, 0.5
    return options


def measured(names: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Measures all parts, one after another. Raises ``RuntimeError`` where a part can't be measured."""
    document: dict[str, Any] = {
        "measured": datetime.now(UTC).replace(microsecond=0).isoformat(),
        "machine": {"cpu": cpu(), "cores": os.cpu_count(), "system": platform.platform()},
        "python": platform.python_version(),
        "turns": options.turns,
        "batches_a_turn": options.rounds,
        "load_s_a_turn": options.load_s,
        "cores_kept_awake": not options.asleep,
    }
    subjects = [name for name in names if name in SUBJECTS]
    turns: dict[str, list[Turn]] = {name: [] for name in subjects}
    with nullcontext() if options.asleep else kept_awake():
        for number in range(options.turns):
            for name in subjects if number % 2 == 0 else subjects[::-1]:
                say(f"turn {number + 1}/{options.turns} · {name}")
                turns[name].append(turn(SUBJECTS[name], options.rounds))
    found, reached = [row for name in subjects for row in rows(name, turns[name])], targets(turns)
    if THROUGHPUT in names:
        loads = throughput.measure(options.turns, options.load_s, say)
        found += throughput.rows(loads)
        reached.append(throughput.target(loads))
    if INTROSPECTION in names:
        say("introspection")
        tiny = introspection.Size(tokens=40, connections=4, further=20, answer_s=0.05, lifetime_s=5)
        row = introspection.measure(tiny if options.quick else introspection.Size())
        found.append(row)
        reached.append(introspection.target(row))
    return {**document, "rows": found, "targets": reached}


def turn(served: Served, rounds: int) -> Turn:
    """Makes one short run."""
    command = [ROOT / ".venv" / "bin" / "mcpace", "layers", served.place, "--tool", "double", "--args", '{"n": 21}']
    command += ["--python", served.interpreter(), "--rounds", str(rounds), "--warm-up", "300ms", "--json"]
    environment = {**os.environ, **served.environment}
    done = subprocess.run(
        command, cwd=SERVERS, env=environment, capture_output=True, text=True, timeout=TURN_LIMIT_S, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{served.name}: {done.stderr.strip()}")
    run = json.loads(done.stdout)
    for case in run["cases"]:
        if case["unsupported"] or case["error"]:
            raise RuntimeError(f"{served.name}, {case['layer']['name']}: {case['unsupported'] or case['error']}")
    return {case["layer"]["name"]: case["trials_s"] for case in run["cases"]}


def rows(name: str, turns: list[Turn]) -> list[dict[str, Any]]:
    """A subject's layers over all turns."""
    found = []
    for layer in LAYERS:
        batches = [value for one in turns for value in one[layer]]
        low, median, high = statistics.quantiles(batches, n=4, method="inclusive")
        over = [over_direct(one, layer) for one in turns]
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
    """The targets, each with the measured value."""
    told: list[dict[str, Any]] = []
    for what, name, layer, limit_s in TARGETS:
        if name in turns:
            over = statistics.median(over_direct(one, layer) for one in turns[name])
            told.append({"what": what, "at_most": limit_s, "unit": "s", "actual": over, "met": over <= limit_s})
    ours, theirs = turns.get("mcpace-django"), turns.get(DRF.name)
    if ours and theirs:
        ratio = by_turns(theirs, ours, lambda one: over_direct(one, "handler"))
        what = "`handler` − `direct` with a DRF serializer: djangorestframework-mcp-server 0.54.0 ÷ mcpace.django"
        told.append({"what": what, "at_least": 25, "unit": "ratio", "actual": ratio, "met": ratio >= 25})
    bare, guarded = turns.get("mcpace"), turns.get("mcpace-guarded")
    if bare and guarded:
        ratio = by_turns(guarded, bare, lambda one: statistics.median(one["socket"]))
        what = "`socket`: mcpace-guarded ÷ mcpace"
        told.append({"what": what, "at_most": 1.3, "unit": "ratio", "actual": ratio, "met": ratio <= 1.3})
    return told


def by_turns(above: list[Turn], below: list[Turn], figure: Any) -> float:
    """The median of the turns' ratios."""
    return statistics.median(figure(one) / figure(other) for one, other in zip(above, below, strict=True))


def over_direct(one: Turn, layer: str) -> float:
    return statistics.median(one[layer]) - statistics.median(one["direct"])


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    sys.exit(main())
