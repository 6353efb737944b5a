"""Measures the layers of one MCP server, from within the interpreter that the server is at home in.

``PYTHON worker/__main__.py MODE MODULE:SERVER TOOL ARGUMENTS``; the protocol stands in
``mcpace_layers/program.py``.

Design constraint: the standard library of Python 3.10 and what the server's own environment has; nothing of ours, since
mcpace may not be installed there. The folder of this file is on Python's path and holds one package, ``mcpace_layers``,
so that no name of the user's is shadowed.
"""

from __future__ import annotations

import sys

from mcpace_layers.program import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
