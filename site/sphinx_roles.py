"""Extension of griffe: makes Markdown of the few forms of reStructuredText that docstrings have."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":[a-z]+:`~?(?:[\w.]+\.)?([^`]+)`")
LITERAL_BLOCK = re.compile(r"::$", re.M)


class SphinxRoles(griffe.Extension):
    """Replaces ``:class:`mcpace.Client``` by the code ``Client``, and ``::`` before a block by ``:``."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrites the object's docstring."""
        if obj.docstring:
            obj.docstring.value = LITERAL_BLOCK.sub(":", ROLE.sub(r"`\1`", obj.docstring.value))
