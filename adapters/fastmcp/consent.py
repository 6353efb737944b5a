"""FastMCP's own OAuth opens a browser and waits on a callback server of its own. Here is who sits at the browser.

`follow` puts a browser before the system's that follows the authorization URL's redirects as far as that server, for
targets that consent by themselves. `browser` leaves everything to FastMCP and to the system's.
"""

from __future__ import annotations

import inspect
import shutil
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastmcp.client.auth import OAuth

import wallet
from driving import given

FOLLOW_LIMIT_S = 30.0
# FastMCP opens the browser before its callback server listens.
RETRY_S = 0.005


class Wallet(wallet.Wallet):
    """FastMCP's own OAuth providers, with their storage."""

    def __init__(self, home: Path) -> None:
        super().__init__()
        self._home = home
        self._stores: dict[str, Any] = {}

    def prepare(self, url: str, auth: dict[str, Any]) -> Prepared:
        if auth.get("consent") != "browser":
            webbrowser.register("mcpace", None, Follower(), preferred=True)
        if auth.get("fresh"):
            self._stores.pop(url, None)
            for kept in self._home.iterdir():
                shutil.rmtree(kept, ignore_errors=True)
        known = inspect.signature(OAuth.__init__).parameters
        options = given(
            scopes=auth.get("scope"), client_name=auth.get("client_name"), callback_port=auth.get("callback_port")
        )
        if "token_storage" in known:
            options["token_storage"] = self._store(url)
        return Prepared(lambda: OAuth(url, **options))

    def _store(self, url: str) -> Any:
        if url not in self._stores:
            from key_value.aio.stores.memory import MemoryStore

            self._stores[url] = MemoryStore()
        return self._stores[url]


class Prepared:
    def __init__(self, construct: Callable[[], Any]) -> None:
        self.construct = construct


class Follower(webbrowser.BaseBrowser):
    """A browser that consents to everything."""

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
        threading.Thread(target=follow, args=(url,), daemon=True).start()
        return True


def follow(url: str) -> None:
    """Follows redirects to the last one, which is retried until its server listens. A failure shows as a timeout of the
    operation."""
    # Scripted targets are on this machine, so a proxy from the environment must not be used.
    browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), Last())
    deadline = time.monotonic() + FOLLOW_LIMIT_S
    while time.monotonic() < deadline:
        try:
            browser.open(url, timeout=FOLLOW_LIMIT_S).close()
            return
        except urllib.error.HTTPError as error:
            if error.code not in (302, 303, 307):
                return
            url = urllib.parse.urljoin(url, error.headers["Location"])
        except OSError:
            time.sleep(RETRY_S)


class Last(urllib.request.HTTPRedirectHandler):
    """Stops at each redirect, so that only the request that failed is retried."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        return None
