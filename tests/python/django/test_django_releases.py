"""Runs the tests of the Django package with the oldest supported release of Django, and with one that needs a newer
Python than these tests, each in its own environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.adoption import ROOT, installed

TESTS = Path(__file__).parent
FILES = ("tools", "views", "plain", "hostile", "fast_serializer", "request_cycle")
LIMIT_S = 600


@pytest.mark.parametrize(("release", "python"), [("4.2", "3.11"), ("6", "3.12")])
def test_other_releases_of_django_are_served_too(release: str, python: str) -> None:
    base = found(python)
    if base is None:
        pytest.skip(f"Django {release} needs Python {python}, which is not on this machine")
    interpreter = str(installed(f"django-{release}", ROOT / "tests" / "django" / f"django-{release}.txt", base))
    # mcpace's pytest plugin is an entry point of an installed mcpace, which this environment lacks.
    words = ["-m", "pytest", "-q", "-p", "mcpace.testing.plugin", "-p", "no:cacheprovider"]
    files = [str(TESTS / f"test_django_{name}.py") for name in FILES]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    version = subprocess.run(
        [interpreter, "-c", "import django; print(django.__version__)"], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert version.stdout.startswith(f"{release}.")
    done = subprocess.run(
        [interpreter, *words, *files], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) > 90


def found(version: str) -> str | None:
    """A Python of this version that runs: the one on the path, or pyenv's. Nothing is downloaded."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for candidate in (shutil.which(f"python{version}"), *map(str, kept)):
        # pyenv's shims on the path run only where their version is selected.
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True, timeout=LIMIT_S).returncode == 0:
            return candidate
    return None
