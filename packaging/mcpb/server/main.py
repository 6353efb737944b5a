"""Starts ``mcpace mcp`` with the settings of the bundle, which the host gives as environment variables."""

import os
import sys

from mcpace.cli.main import main

# A host that has no value for an optional setting leaves it empty, or leaves the reference to it as it is.
SETTINGS = {"MCPACE_BUNDLE_FOLDER": "--folder", "MCPACE_BUNDLE_CONFIG": "--config"}

options = [
    f"{option}={value}"
    for name, option in SETTINGS.items()
    if (value := os.environ.get(name, "")) and not value.startswith("${")
]
if os.environ.get("MCPACE_BUNDLE_YES") == "true":
    options.append("--yes")
sys.argv = ["mcpace", "mcp", *options]
main()
