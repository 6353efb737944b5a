"""Writes the documents and types that are generated from code, and the version of the workspace where it is repeated.

:func:`documents` lists the files.

`--check` only compares.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import finding_contexts
import typer
from manual_pages import EXIT_CODES
from typescript_types import interfaces

from mcpace import _core
from mcpace.cli.commands import COMMANDS, app
from mcpace.cli.settings_file import is_settable
from mcpace.lab.tables import schema as tables
from mcpace.report.model import contexts
from mcpace.report.model.run import Run
from mcpace.report.page import model

ROOT = Path(__file__).parents[1]
ALTERNATIVES = ROOT / "crates" / "explain" / "src" / "findings" / "inside" / "alternatives.json"
TABLE = re.compile(r"(?<=<!-- table -->\n).*(?=<!-- end of table -->)", re.S)
MEANINGS = re.compile(r"(?<=<!-- meanings -->\n).*(?=<!-- end of meanings -->)", re.S)

VERSIONS = {
    "Cargo.toml": re.compile(r'(^mcpace-[a-z-]+ = .*version = "=)[^"]+', re.M),
    "python/mcpace/__init__.py": re.compile(r'(^__version__ = ")[^"]+', re.M),
    "docs/ci.md": re.compile(r"(mcpace/mcpace@v|rev: v)\S+"),
}
"""The places that repeat the version of the workspace: the group ends where the version begins."""


def main() -> int:
    """Exit code 1 where `--check` finds a document stale."""
    stale = []
    for name, text in documents().items():
        path = ROOT / name
        if "--check" in sys.argv:
            if not path.exists() or path.read_text() != text:
                stale.append(name)
        else:
            path.write_text(text)
    for name in stale:
        print(f"{name} is stale: run make docs", file=sys.stderr)
    return 1 if stale else 0


def documents() -> dict[str, str]:
    """The generated documents: text by path."""
    catalogue = _core.catalogue()
    schema = finding_contexts.into_run_schema(Run.model_json_schema(by_alias=True), catalogue)
    types = interfaces("python/mcpace/report/page/model.py", model.Shell, model.Live, model.Listing)
    findings = TABLE.sub(lambda _: proofs() + "\n", (ROOT / "docs" / "findings.md").read_text())
    findings = MEANINGS.sub(lambda _: meanings(findings, catalogue) + "\n", findings)
    inside = TABLE.sub(lambda _: alternatives() + "\n", (ROOT / "docs" / "inside.md").read_text())
    settings = TABLE.sub(lambda _: settable_options() + "\n", (ROOT / "docs" / "settings.md").read_text())
    parquet = TABLE.sub(lambda _: tables.document() + "\n", (ROOT / "docs" / "parquet.md").read_text())
    return {
        "docs/parquet.md": parquet,
        "docs/settings.md": settings,
        "docs/cli.md": command_line(),
        "docs/run.schema.json": json.dumps(schema, indent=1) + "\n",
        "docs/findings.md": findings,
        "docs/inside.md": inside,
        "web/src/page.gen.ts": types,
        "web/src/contexts.gen.ts": finding_contexts.typescript(catalogue, contexts.CONTEXTS),
        "python/mcpace/report/model/contexts.py": finding_contexts.python(catalogue),
        **with_version(),
    }


def with_version() -> dict[str, str]:
    """The files that repeat the version of the workspace, with the version that its `Cargo.toml` has."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    texts = {}
    for name, place in VERSIONS.items():
        text, count = place.subn(rf"\g<1>{version}", (ROOT / name).read_text())
        assert count, f"{name} names no version of mcpace"
        texts[name] = text
    return texts


def proofs() -> str:
    """The table of the tests that show each finding, from descriptions beside the tests."""
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    from support.proofs import table

    return table()


def meanings(findings: str, catalogue: dict[str, Any]) -> str:
    """The table of what each finding means, in the order of the page's headings."""
    # A code that has a second entry, for loads, keeps the meaning of the first.
    found = {cause["code"]: cause["meaning"] for cause in reversed(catalogue["causes"])}
    codes = [code for code in re.findall(r"^## (\S+)$", findings, re.M) if code in found]
    return "\n".join(
        ["| finding | meaning |", "|---|---|", *(f"| [`{code}`](#{code}) | {found[code]} |" for code in codes)]
    )


def alternatives() -> str:
    """The table of quicker libraries, from the measurements."""
    rows = json.loads(ALTERNATIVES.read_text())
    lines = [
        "| library | alternative | use | processor time, library ÷ alternative | measured |",
        "|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: (row["library"].lower(), row["use"])):
        pair = f"{row['library']} {row['version']} | {row['alternative']} {row['alternative_version']}"
        lines.append(f"| {pair} | {row['use']} | {row['factor']:g} | {row['measured']}, {row['runtime']} |")
    return "\n".join(lines)


def settable_options() -> str:
    """The table of the options that a settings file may set, by command."""
    group: Any = typer.main.get_command(app)
    lines = ["| table | keys |", "|---|---|"]
    for command in COMMANDS:
        params = group.get_command(typer.Context(group), command).params
        keys = sorted(param.opts[0].removeprefix("--") for param in params if is_settable(param))
        lines += [f"| `[{command}]` | {', '.join(f'`{key}`' for key in keys)} |"] if keys else []
    return "\n".join(lines)


def command_line() -> str:
    """The help of every command."""
    parts = [
        "# Command line",
        "Made by `make docs` from the commands themselves.",
        "Options that are repeated can stand in [a settings file](settings.md). `make man` writes these pages as "
        "manual pages, and `mcpace completion SHELL` prints a shell's completion script.",
        "TARGET is a URL, `stdio:COMMAND`, `serve:COMMAND` (a program that listens), `MODULE:SERVER`, "
        "`FILE.py:SERVER`, `profile:NAME`, or a name from the `mcp.json` of `--config`.",
        f"Exit codes: {EXIT_CODES}.",
        block("--help"),
    ]
    for command in COMMANDS:
        parts += [f"## mcpace {command}", block(command, "--help")]
    return "\n\n".join(parts) + "\n"


def block(*words: str) -> str:
    """The output of mcpace with these arguments, as a code block."""
    program = [str(Path(sys.executable).with_name("mcpace")), *words]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60, env=environment)
    lines = [line.rstrip() for line in done.stdout.strip().splitlines()]
    return "\n".join(["```", *lines, "```"])


if __name__ == "__main__":
    sys.exit(main())
