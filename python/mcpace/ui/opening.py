"""Opens the browser at an address that only the current user may know.

Design constraint: the address contains the token, and every user of the machine can read command lines. The browser
therefore gets the path of a private file, which redirects to the address.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path

CONSOLE_BROWSERS = frozenset({"www-browser", "browsh", "elinks", "links", "links2", "lynx", "w3m"})
"""Browsers that run no scripts and would take over the terminal."""
FILE = "open-mcpace-ui.html"


@contextmanager
def open_browser(url: str) -> Iterator[None]:
    """Opens the browser at ``url`` and removes the redirecting file at the end of the block.

    The browser is started on another thread, because the call may last until the browser is closed, and the page has to
    be served meanwhile.
    """
    # Only its owner may enter a temporary folder.
    with tempfile.TemporaryDirectory(prefix="mcpace-ui-") as folder:
        place = Path(folder, FILE)
        place.touch(0o600)
        place.write_text(redirect_page(url), encoding="utf-8")
        threading.Thread(target=_open_url, args=(place.as_uri(),), daemon=True).start()
        yield


def redirect_page(url: str) -> str:
    """An HTML page that redirects to ``url``."""
    to = escape(url)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f'<meta http-equiv="refresh" content="0; url={to}">\n<title>mcpace ui</title>\n</head>\n'
        f'<body><p><a href="{to}">To the runs</a></p></body>\n</html>\n'
    )


def has_browser(environment: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Whether a browser can be opened. Without a screen, only one that ``BROWSER`` names can."""
    wanted = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return platform in ("darwin", "win32") or any(environment.get(name) for name in wanted)


def _open_url(url: str) -> None:
    try:
        browser = webbrowser.get()
        if Path(getattr(browser, "name", "")).name not in CONSOLE_BROWSERS:
            browser.open(url)
    except (OSError, ValueError, webbrowser.Error):
        return  # the command also prints the address
