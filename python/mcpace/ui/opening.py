"""Opens the browser at an address that only its own user may know.

Design constraint: a command line is everybody's of this machine to read, and the address holds the token: so the
browser is handed a file of the user's own, which leads on to the address.
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
"""They know no script, and would take the terminal."""
FILE = "open-mcpace-ui.html"


@contextmanager
def opened(url: str) -> Iterator[None]:
    """The browser at ``url``, as soon as it comes; the file that leads there is gone at the end.

    It comes on a thread of its own: some stay until they are closed, and all want to be served meanwhile.
    """
    # A folder that only its owner may enter, since it is made so.
    with tempfile.TemporaryDirectory(prefix="mcpace-ui-") as folder:
        place = Path(folder, FILE)
        place.touch(0o600)
        place.write_text(leading_to(url), encoding="utf-8")
        threading.Thread(target=_open, args=(place.as_uri(),), daemon=True).start()
        yield


def leading_to(url: str) -> str:
    """A page that leads to another."""
    to = escape(url)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f'<meta http-equiv="refresh" content="0; url={to}">\n<title>mcpace ui</title>\n</head>\n'
        f'<body><p><a href="{to}">To the runs</a></p></body>\n</html>\n'
    )


def has_browser(environment: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Whether there is one to open: where there is no screen only what ``BROWSER`` names."""
    wanted = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return platform in ("darwin", "win32") or any(environment.get(name) for name in wanted)


def _open(url: str) -> None:
    try:
        browser = webbrowser.get()
        if Path(getattr(browser, "name", "")).name not in CONSOLE_BROWSERS:
            browser.open(url)
    except (OSError, ValueError, webbrowser.Error):
        return  # the address is printed, too
