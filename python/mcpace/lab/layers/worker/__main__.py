"""Measures the layers of one MCP server, inside the interpreter of the server's environment.

``PYTHON worker/__main__.py MODE MODULE:SERVER TOOL ARGUMENTS``; ``mcpace_layers/program.py`` defines the protocol.

Design constraint: The worker uses only the standard library of Python 3.10 and the server's own environment, since
mcpace may not be installed there. This file's folder is on Python's path and has only the package ``mcpace_layers``, so
that it shadows no module of the user.
"""

from __future__ import annotations

import sys

from mcpace_layers.program import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
