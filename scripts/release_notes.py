"""Prints the changelog of a release: `release_notes.py v0.1.0`.

Exit code 1 with one sentence where the tag is not the version of the Cargo workspace, or the changelog has no section
for the version. Standard library only: the release runs it without an installation.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(tag: str) -> int:
    """Prints the section, or the reason why the tag can't be released."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    if tag != f"v{version}":
        print(f"the tag is {tag} and the version in Cargo.toml is {version}: tag v{version}", file=sys.stderr)
        return 1
    notes = section((ROOT / "CHANGELOG.md").read_text(), version)
    if notes is None:
        print(
            f"CHANGELOG.md has no section for {version}: rename Unreleased to [{version}] - YYYY-MM-DD", file=sys.stderr
        )
        return 1
    print(notes)
    return 0


def section(changelog: str, version: str) -> str | None:
    """The text of the version's section; ``None`` where there is none."""
    found = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## \[|\Z)", changelog, re.M | re.S)
    return found[1].strip() if found and found[1].strip() else None


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: release_notes.py TAG, for example v0.1.0")
    sys.exit(main(sys.argv[1]))
