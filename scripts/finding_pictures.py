"""Makes a picture of each finding for docs/findings.md: its card in the report, and the call that it was seen in.

The runs are those of the tests that tests/python/support/proofs.py names. A picture is docs/images/findings/CODE.webp.
A folder as argument has runs that were kept by support/kept_runs.py; the tests are then not run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pictures import ROOT, report_page, webp
from playwright.sync_api import Browser

from support.browser import Watched, chromium
from support.kept_runs import FOLDER
from support.proofs import ROWS

IMAGES = ROOT / "docs" / "images" / "findings"
WIDTH = 720
"""Width of the report in the picture. It is near the width of a page's text, so the letters keep their size."""
QUALITY = 0.4
MOST_BYTES = 1_500_000
"""Most bytes of all pictures together."""
MARGIN = 8
EVENTS = 5
"""Most events of the evidence in the picture."""
LIMIT_S = 3600.0
ALONE = """([code, margin, events]) => {
  const card = [...document.querySelectorAll("#findings article")]
    .find((one) => one.querySelector("header code").textContent === code);
  card.querySelector("button.show")?.click();
  const drawn = card.querySelector("button.show") ? "#calls ul.legend, #calls figure.call:first-of-type" : null;
  card.querySelector("button.show")?.remove();
  card.querySelectorAll(".evidence li").forEach((row, index) => index < events || row.remove());
  const shown = document.createElement("div");
  shown.append(card, ...(drawn ? document.querySelectorAll(drawn) : []));
  document.body.replaceChildren(shown);
  Object.assign(document.body.style, { margin: "0", padding: "0" });
  Object.assign(shown.style, { display: "grid", gap: `${margin}px`, padding: `${margin}px` });
  const box = shown.getBoundingClientRect();
  return { x: 0, y: box.y, width: box.width, height: box.height };
}"""
"""Leaves the card of a finding on the page, and the drawing of its call where there is one. Returns their place."""


def main() -> int:
    """Exit code 1 where the pictures are too large for the repository."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else _run_tests(Path(temporary))
        IMAGES.mkdir(parents=True, exist_ok=True)
        with chromium() as browser:
            sizes = [draw(browser, file, Path(temporary)) for file in sorted(folder.glob("*.json"))]
    print(f"{len(sizes)} pictures, {sum(sizes):,} bytes")
    return int(sum(sizes) > MOST_BYTES)


def draw(browser: Browser, file: Path, folder: Path) -> int:
    """Draws the finding that the file's name tells. Returns the size of the picture in bytes."""
    with Watched(browser, width=WIDTH) as watched:
        page = watched.open(report_page(file, folder))
        place = page.evaluate(ALONE, [file.stem, MARGIN, EVENTS])
        picture = webp(page, page.screenshot(clip=place, full_page=True), QUALITY)
    (IMAGES / f"{file.stem}.webp").write_bytes(picture)
    print(f"docs/images/findings/{file.stem}.webp: {len(picture):,} bytes")
    return len(picture)


def _run_tests(folder: Path) -> Path:
    """Runs the tests that show a finding in a real program, and returns the folder with the Runs that they made."""
    places = {f"{place.file}::{place.shows}" for row in ROWS if (place := row.live or row.release)}
    command = [sys.executable, "-m", "pytest", "-m", "", "-q", *sorted(places)]
    # A test that this machine is too slow for leaves its finding without a new picture.
    subprocess.run(command, cwd=ROOT, env={**os.environ, FOLDER: str(folder)}, check=False, timeout=LIMIT_S)
    return folder


if __name__ == "__main__":
    sys.exit(main())
