"""Extension of griffe: makes Markdown of the few forms of reStructuredText that docstrings have."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

ROLE = re.compile(r":[a-z]+:`~?(?:[\w.]+\.)?([^`]+)`")
LITERAL_BLOCK = re.compile(r"::$", re.M)


class SphinxRoles(griffe.Extension):
    """Replaces ``:class:`mcpace.Client``` by the code ``Client``, and ``::`` before a block by ``:``."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrites the object's docstring."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(docstring: str) -> str:
    """The docstring as Markdown."""
    text, mark, block = docstring.partition("::\n\n")
    if block and not block.startswith(" "):
        # A block that ends the docstring has lost its indentation with the docstring's own.
        docstring = text + mark + textwrap.indent(block, "    ")
    return LITERAL_BLOCK.sub(":", ROLE.sub(r"`\1`", docstring))
