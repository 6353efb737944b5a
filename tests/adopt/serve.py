"""Serves an example as `mcpace serve` does.

Usage: serve.py EXAMPLE.py TRANSPORT [SETTING=JSON …]; the settings are those that a command line would give. A program
of its own, since clients start it without the variables that would name mcpace's folder, and since the SDKs'
environments have no command line.
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
os.environ["FASTMCP_CHECK_FOR_UPDATES"] = "off"

from mcpace.server.running.runner import run_target
from mcpace.server.running.settings import Settings, transport

if __name__ == "__main__":
    example, way, *words = sys.argv[1:]
    settings = {name: json.loads(value) for name, _, value in (word.partition("=") for word in words)}
    run_target(example, Settings(transport=transport(way), given=tuple(settings), **settings))
