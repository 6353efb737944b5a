"""Writes the documents that are made from code: docs/cli.md and docs/run.schema.json. `--check` only compares."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from mcpace.report.run import Run

DOCS = Path(__file__).parents[1] / "docs"
COMMANDS = ("demo", "clients", "bisect", "measure", "load", "servers", "layers", "record", "target", "report", "serve")


def main() -> int:
    """Exit code 1 where `--check` finds a document stale."""
    stale = []
    for name, text in documents().items():
        path = DOCS / name
        if "--check" in sys.argv:
            if not path.exists() or path.read_text() != text:
                stale.append(name)
        else:
            DOCS.mkdir(exist_ok=True)
            path.write_text(text)
    for name in stale:
        print(f"docs/{name} is stale: run make docs", file=sys.stderr)
    return 1 if stale else 0


def documents() -> dict[str, str]:
    """File name to text."""
    schema = json.dumps(Run.model_json_schema(by_alias=True), indent=1) + "\n"
    return {"cli.md": command_line(), "run.schema.json": schema}


def command_line() -> str:
    """Every command's own help."""
    parts = [
        "# Command line",
        "Made by `make docs` from the commands themselves.",
        "TARGET is a URL, `stdio:COMMAND`, `profile:NAME`, or a name out of an `mcp.json` given by `--config`.",
        "Exit codes: 0 done; 1 `--fail-on` or `--threshold` was hit; 2 usage; 3 the target or a needed tool could not "
        "be reached or set up; 130 interrupted, with what was measured so far saved and marked partial.",
        block("--help"),
    ]
    for command in COMMANDS:
        parts += [f"## mcpace {command}", block(command, "--help")]
    return "\n\n".join(parts) + "\n"


def block(*words: str) -> str:
    """The output of mcpace with these words, as a code block."""
    program = [str(Path(sys.executable).with_name("mcpace")), *words]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60, env=environment)
    lines = [line.rstrip() for line in done.stdout.strip().splitlines()]
    return "\n".join(["```", *lines, "```"])


if __name__ == "__main__":
    sys.exit(main())
