"""Groups differences by their likely cause: the kind of request, the place in the answer, and the two values.

Usage: causes.py compat.json [--way adopted] [--line mcp-2] [--most 3]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("--way")
    parser.add_argument("--line")
    parser.add_argument("--most", type=int, default=3, help="examples of each cause")
    asked = parser.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    report = json.loads(asked.report.read_text())
    found: dict[tuple[str, str], dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for line, told in report.items():
        if asked.line in (None, line):
            for one in told["objects"]:
                for way, outcome in one["ways"].items():
                    if asked.way in (None, way):
                        _gather(found[(line, way)], one["object"], outcome)
    for (line, way), causes in found.items():
        print(f"\n### {line}, {way}\n")
        for cause, examples in sorted(causes.items(), key=lambda item: -len({name for name, *_ in item[1]})):
            print(f"- **{len({name for name, *_ in examples})} objects** {cause}")
            seen: set[str] = set()
            for name, run, step, left, right in examples:
                if name not in seen and len(seen) < asked.most:
                    seen.add(name)
                    print(f"  - `{name}`, {run}, {step}: `{left[:230]}` → `{right[:230]}`")


def _gather(causes: dict[str, list[Any]], name: str, outcome: dict[str, Any]) -> None:
    if outcome["failure"]:
        last = ([line for line in outcome["failure"].splitlines() if line.strip()] or ["nothing was said"])[-1]
        causes[f"{outcome['verdict']}: {re.sub(r'[0-9]+', 'N', last)[:160]}"].append((name, "", "start", "", last))
        return
    # A session that doesn't begin causes all later differences.
    closed = {spot["run"] for spot in outcome["spots"] if spot["step"] == "open" and spot["path"] == "result"}
    for spot in outcome["spots"]:
        if spot["run"] in closed and spot["step"] != "open":
            continue
        if not spot["documented"]:
            kind = " ".join(spot["step"].split()[:1])
            path = re.sub(r"\[[^]]*\]", "[]", spot["path"])
            values = f"{_shape(spot['original'])} → {_shape(spot['other'])}"
            cause = f"{kind} {path}: {values}"
            causes[cause].append((name, spot["run"], spot["step"], spot["original"], spot["other"]))


def _shape(text: str) -> str:
    if text == "(absent)" or len(text) < 40:
        return re.sub(r"\d+", "N", text)
    return text[:12] + "…"


if __name__ == "__main__":
    main()
