"""HTTP headers that a user adds to each request. A header's value may be secret: no message repeats it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from mcpace.lab.errors import UsageProblem
from mcpace.lab.files import is_unicode

RESERVED = {"content-type", "content-length", "host", "accept", "connection", "transfer-encoding"}
"""Headers that belong to the protocol or to the HTTP client."""
VARIABLE = re.compile(r"\$(?:\{(?P<braced>[A-Za-z_]\w*)\}|(?P<bare>[A-Za-z_]\w*))", re.ASCII)


def parse_headers(words: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """``NAME: VALUE`` …, where ``$VARIABLE`` in a value is an environment variable.

    Raises :class:`UsageProblem` for a word of another form and for a variable that is not set.
    """
    return tuple(_parse_header(word) for word in words)


def checked_header(name: str, value: str, place: str) -> tuple[str, str]:
    """A header with its name in lower case. ``place`` names the header's source in messages.

    Raises :class:`UsageProblem` where no request may carry this header.
    """
    lower = name.strip().lower()
    if re.fullmatch(r"[a-z0-9!#$%&'*+.^_`|~-]+", lower) is None:
        raise UsageProblem(f"{place}: {name!r} can't be the name of a header")
    if lower in RESERVED or lower.startswith("mcp-"):
        raise UsageProblem(f"{place}: the header {lower} belongs to the protocol and can't be replaced")
    if not is_unicode(value):
        raise UsageProblem(f"{place}: the value of the header {lower} is not UTF-8 text")
    if any((ord(character) < 32 and character != "\t") or ord(character) == 127 for character in value):
        raise UsageProblem(f"{place}: the value of the header {lower} has control characters, which no header can have")
    return lower, value


def _parse_header(word: str) -> tuple[str, str]:
    name, colon, value = word.partition(":")
    if not colon:
        raise UsageProblem("--header takes NAME: VALUE, as in --header 'X-Api-Key: $KEY'")

    def variable(match: re.Match[str]) -> str:
        variable_name = match["braced"] or match["bare"]
        found = os.environ.get(variable_name)
        if found is None:
            raise UsageProblem(f"--header {name.strip()}: the environment variable {variable_name} is not set")
        return found

    return checked_header(name, VARIABLE.sub(variable, value.strip()), "--header")
