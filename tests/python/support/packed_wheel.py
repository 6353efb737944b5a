"""Packs the checkout, with its compiled part, as a wheel for this machine. `maturin build` would compile it anew."""

from __future__ import annotations

import os
import tomllib
import zipfile
from pathlib import Path

from mcpace import __version__

ROOT = Path(__file__).parents[3]
LEFT_OUT = {"__pycache__", "node_modules"}


def pack_wheel(folder: Path) -> Path:
    """Writes the wheel to ``folder`` and returns its path. Its requirements and its command are those of pyproject."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wheel = folder / f"mcpace-{__version__}-cp311-abi3-linux_{os.uname().machine}.whl"
    information = f"mcpace-{__version__}.dist-info"
    extras = project["optional-dependencies"]
    required = [*project["dependencies"], *(f"{one}; extra == '{name}'" for name in extras for one in extras[name])]
    metadata = [
        "Metadata-Version: 2.1",
        "Name: mcpace",
        f"Version: {__version__}",
        *(f"Provides-Extra: {name}" for name in extras),
        *(f"Requires-Dist: {one}" for one in required),
    ]
    scripts = ["[console_scripts]", *(f"{name} = {place}" for name, place in project["scripts"].items())]
    kind = ["Wheel-Version: 1.0", "Root-Is-Purelib: false", f"Tag: cp311-abi3-linux_{os.uname().machine}"]
    texts = {"METADATA": metadata, "entry_points.txt": scripts, "WHEEL": kind}
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for place, folders, files in os.walk(ROOT / "python" / "mcpace", followlinks=True):
            folders[:] = [name for name in folders if name not in LEFT_OUT]
            for name in files:
                path = Path(place, name)
                archive.write(path, path.relative_to(ROOT / "python"))
        for name, lines in texts.items():
            archive.writestr(f"{information}/{name}", "\n".join(lines) + "\n")
        listed = "".join(f"{name},,\n" for name in [*archive.namelist(), f"{information}/RECORD"])
        archive.writestr(f"{information}/RECORD", listed)
    return wheel
