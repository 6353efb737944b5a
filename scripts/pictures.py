"""Makes the pictures of docs/inside.md: measures examples/inside with --inside, and takes screenshots of the report.

A RUN.json as the argument replaces the measurement.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mcpace.report.model.run import Run
from mcpace.report.page.html import render

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "inside"
IMAGES = ROOT / "docs" / "images"
RELEASE = "python@1.30.0"
WIDTH = 1200
PICTURES = {"inside.png": "#inside", "inside-lanes.png": "#calls"}
CALL = 1
"""Position of the tool call among the drawn operations: behind the connect, which takes longer."""
MOST_BYTES = 150_000

sys.path.insert(0, str(ROOT / "tests" / "python"))


def main() -> int:
    """Exit code 1 where a picture is too large for the repository."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run.load(Path(sys.argv[1])) if len(sys.argv) > 1 else _measured(Path(folder))
        page = Path(folder) / "report.html"
        page.write_text(render(run), encoding="utf-8")
        return max(_screenshots(page.as_uri()))


def _screenshots(url: str) -> Iterator[int]:
    from support.browser import Watched, chromium

    with chromium() as browser, Watched(browser, width=WIDTH) as watched:
        # A tall window needs no scrolling, which would put the bar of the page over a picture.
        watched.page.set_viewport_size({"width": WIDTH, "height": 6000})
        page = watched.open(url)
        page.locator("#calls select").first.select_option(index=CALL)
        for name, place in PICTURES.items():
            made = page.locator(place).screenshot(path=IMAGES / name)
            print(f"docs/images/{name}: {len(made):,} bytes")
            yield int(len(made) > MOST_BYTES)


def _measured(folder: Path) -> Run:
    from support.release_proofs import interpreter

    told = folder / "run.json"
    # The pictures show the words of the documentation, without the path of this machine's environment.
    path = os.pathsep.join([str(Path(interpreter(RELEASE)).parent), os.environ.get("PATH", os.defpath)])
    arguments = json.dumps({"city": "Oslo"})
    words = ["measure", "stdio:python weather.py", "--tool", "forecast", "--args", arguments, "--inside", "--json"]
    with subprocess.Popen([sys.executable, str(EXAMPLE / "weather_api.py")], stdout=subprocess.PIPE) as api:
        try:
            assert api.stdout is not None
            api.stdout.readline()  # it listens
            with told.open("wb") as output:
                command = [str(Path(sys.executable).with_name("mcpace")), *words]
                environment = {**os.environ, "PATH": path}
                subprocess.run(command, cwd=EXAMPLE, env=environment, stdout=output, check=True, timeout=600)
        finally:
            api.terminate()
    return Run.load(told)


if __name__ == "__main__":
    sys.exit(main())
