"""Makes the pictures of the documents: screenshots of the reports of `mcpace demo`, of examples/inside and of
`mcpace check`.

Files as arguments replace the runs: DEMO.json, INSIDE.json, CHECK.json.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mcpace.report.model.run import Run
from mcpace.report.page.html import render

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "inside"
IMAGES = ROOT / "docs" / "images"
RELEASE = "python@1.30.0"
WIDTH = 1200
PICTURES = {"inside.webp": "#inside", "inside-lanes.webp": "#calls"}
QUALITY = 0.6
FIRST_PICTURE = "report.webp"
"""The verdict and the first finding of the demo, for the first page of the site, which is limited to 150 kB."""
FIRST_WIDTH = 1000
FIRST_MOST_BYTES = 45_000
BAR = 60
"""Height of the page's bar and the space below it."""
WEBP = """async ([source, quality]) => {
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", quality);
}"""
CHECK_PICTURE = "check.webp"
"""The servers of a check, and the advice that was tried."""
CHECKED_SERVERS = {
    "everything": ["npx", "-y", "@modelcontextprotocol/server-everything@2026.8.31"],
    "filesystem": ["npx", "-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "."],
    "memory": ["npx", "-y", "@modelcontextprotocol/server-memory@2026.8.31"],
    "time": ["uvx", "mcp-server-time@2026.10.19"],
    "git": ["uvx", "mcp-server-git@2026.10.19"],
}
CALL = 1
"""Position of the tool call among the drawn operations: behind the connect, which takes longer."""
MOST_BYTES = 150_000

sys.path.insert(0, str(ROOT / "tests" / "python"))


def main() -> int:
    """Exit code 1 where a picture is too large for the repository."""
    with tempfile.TemporaryDirectory() as folder:
        given = [Path(name) for name in sys.argv[1:]]
        demo = given[0] if given else _demo(Path(folder))
        inside = given[1] if len(given) > 1 else _measured(Path(folder))
        check = given[2] if len(given) > 2 else _checked(Path(folder))
        pages = [report_page(run, Path(folder)) for run in (inside, demo, check)]
        return max([*_screenshots(pages[0]), _first_picture(pages[1]), _check_picture(pages[2])])


def report_page(run: Path, folder: Path) -> str:
    """Writes the report of a run's file to a page in ``folder``, and returns the page's URL."""
    page = folder / f"{run.stem}.html"
    page.write_text(render(Run.load(run)), encoding="utf-8")
    return page.as_uri()


def webp(page: Page, taken: bytes, quality: float) -> bytes:
    """Converts a screenshot to WebP in the browser, which has the encoder. ``page`` is empty afterwards."""
    page.goto("about:blank")  # the report's own policy forbids pictures
    source = "data:image/png;base64," + base64.b64encode(taken).decode()
    return base64.b64decode(page.evaluate(WEBP, [source, quality]).partition(",")[2])


def _first_picture(url: str) -> int:
    from support.browser import Watched, chromium

    with chromium() as browser, Watched(browser, width=FIRST_WIDTH) as watched:
        watched.page.set_viewport_size({"width": FIRST_WIDTH, "height": 3000})
        page = watched.open(url)
        box = page.locator("#findings article").first.bounding_box()
        assert box is not None
        height = box["y"] + box["height"] - BAR + 10
        taken = page.screenshot(clip={"x": 0, "y": BAR, "width": FIRST_WIDTH, "height": height})
        made = webp(page, taken, QUALITY)
    (IMAGES / FIRST_PICTURE).write_bytes(made)
    print(f"docs/images/{FIRST_PICTURE}: {len(made):,} bytes")
    return int(len(made) > FIRST_MOST_BYTES)


def _check_picture(url: str) -> int:
    from support.browser import Watched, chromium

    with chromium() as browser, Watched(browser, width=FIRST_WIDTH) as watched:
        watched.page.set_viewport_size({"width": FIRST_WIDTH, "height": 6000})
        page = watched.open(url)
        box = page.locator("#table-1").bounding_box()
        assert box is not None, "the check has no second table: nothing that was tried is faster"
        height = box["y"] + box["height"] - BAR
        taken = page.screenshot(clip={"x": 0, "y": BAR, "width": FIRST_WIDTH, "height": height})
        made = webp(page, taken, QUALITY)
    (IMAGES / CHECK_PICTURE).write_bytes(made)
    print(f"docs/images/{CHECK_PICTURE}: {len(made):,} bytes")
    return int(len(made) > MOST_BYTES)


def _checked(folder: Path) -> Path:
    configuration, told = folder / "mcp.json", folder / "check.json"
    entries = {name: {"command": words[0], "args": words[1:]} for name, words in CHECKED_SERVERS.items()}
    configuration.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("mcpace")), "check", str(configuration), "--out", str(told)]
    # The first check fills the caches of npx and uvx.
    for _ in range(2):
        subprocess.run(command, cwd=folder, check=True, timeout=600)
    return told


def _demo(folder: Path) -> Path:
    told = folder / "demo.json"
    with told.open("wb") as output:
        command = [str(Path(sys.executable).with_name("mcpace")), "demo", "--json"]
        subprocess.run(command, cwd=folder, stdout=output, check=True, timeout=600)
    return told


def _screenshots(url: str) -> Iterator[int]:
    from support.browser import Watched, chromium

    with chromium() as browser, Watched(browser, width=WIDTH) as watched:
        # A tall window needs no scrolling, which would put the bar of the page over a picture.
        watched.page.set_viewport_size({"width": WIDTH, "height": 6000})
        page = watched.open(url)
        page.locator("#calls select").first.select_option(index=CALL)
        taken = {name: page.locator(place).screenshot() for name, place in PICTURES.items()}
        for name, picture in taken.items():
            made = webp(page, picture, QUALITY)
            (IMAGES / name).write_bytes(made)
            print(f"docs/images/{name}: {len(made):,} bytes")
            yield int(len(made) > MOST_BYTES)


def _measured(folder: Path) -> Path:
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
    return told


if __name__ == "__main__":
    sys.exit(main())
