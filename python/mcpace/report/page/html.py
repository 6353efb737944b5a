"""Renders a Run as one page: a single file that needs no network, in light and dark, on a screen and on paper.

The bundle is built from ``web/``. The page contains the run as data, which no browser executes.

Design constraint: the page's policy forbids every request, and every script and style except the bundle's, which the
policy names by their digests. Even text that escaped the escaping could therefore not execute. The page also contains
the verdict as text, for readers without the script.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib.resources import files

from mcpace.report.model.run import Run
from mcpace.report.page.build import page_of
from mcpace.report.page.model import Shell

ASSETS = "assets"
SCRIPT, STYLE = "report.js", "report.css"
TITLE = 90
"""Maximum number of characters of the verdict in the window's title."""


class NotBuilt(RuntimeError):
    """The bundle is missing, because the checkout was not built."""

    def __init__(self) -> None:
        super().__init__("the report's page is not built: run make build")


def render(run: Run) -> str:
    """The text of a run's page, to be encoded as UTF-8. Text from a peer is cleaned and escaped."""
    page = page_of(run)
    verdict = page.head.verdict
    still = f"<main><h1>{escape(verdict[0])}</h1>" + "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict[1:])
    return _document(
        Shell(view="run", page=page),
        title=f"mcpace: {verdict[0][:TITLE]}",
        still=f"{still}<p>All else needs this page's script, which reads nothing but this file.</p></main>",
        connects=False,
    )


def shell() -> str:
    """The page of ``mcpace ui``: the bundle without a run."""
    still = "<main><h1>mcpace</h1><p>This page needs its script.</p></main>"
    return _document(Shell(view="served"), title="mcpace", still=still, connects=True)


def _document(data: Shell, *, title: str, still: str, connects: bool) -> str:
    style, script = _asset(STYLE), _asset(SCRIPT)
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy(connects=connects)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>{style}</style>\n</head>\n<body>\n"
        f'<div id="app">{still}</div>\n'
        f'<script type="application/json" id="data">{embedded_json(data)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def embedded_json(data: Shell) -> str:
    """JSON for an HTML element. Characters that could end the element or begin other HTML are escaped."""
    text = data.model_dump_json(by_alias=True, exclude_none=True)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def content_policy(*, connects: bool) -> str:
    """The content security policy: the page may run its own script, use its own style and, where ``connects`` is set,
    send requests to its own server."""
    asks = " connect-src 'self';" if connects else ""
    return (
        f"default-src 'none'; style-src {_digest(_asset(STYLE))}; script-src {_digest(_asset(SCRIPT))};{asks} "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _asset(name: str) -> str:
    """A file of the bundle. Only these files are inserted into the page without escaping.

    Raises :class:`NotBuilt` where the file is missing.
    """
    try:
        text = files("mcpace.report").joinpath(ASSETS, name).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NotBuilt from error
    assert "</script" not in text, "a script that ends itself early"
    assert "</style" not in text, "a style that ends itself early"
    return text


@cache
def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
