"""OAuth for the client program: tokens in memory, and somebody who consents.

`consent: "follow"` is for scripted targets that consent by themselves: the authorization URL is fetched and
the code read out of its redirect. `consent: "browser"` is for real servers: the system's browser opens, and a
callback server on localhost waits for it.

The flow itself (discovery, registration, PKCE, tokens, refresh) is the SDK's own: it is what is measured.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import wallet

try:
    from mcp.client import auth as sdk_auth
    from mcp.shared import auth as sdk_types
except ImportError:  # before mcp 1.9
    sdk_auth = None

FOLLOW_LIMIT_S = 30.0
BROWSER_LIMIT_S = 180.0
# Registered and read from the redirect, but nobody listens there: `follow` stops at the Location header.
FOLLOW_REDIRECT_URI = "http://localhost:33418/callback"


class Unsupported(Exception):
    """This release has no OAuth."""


class ConsentRefused(Exception):
    """The authorization server, or the person, said no (or nothing)."""


class Wallet(wallet.Wallet):
    """The official SDK's, with token storage and callback addresses."""

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[str, Prepared] = {}

    def prepare(self, url: str, auth: dict[str, Any]) -> Prepared:
        if sdk_auth is None:
            raise Unsupported("this release has no OAuth client")
        if url not in self._entries or auth.get("fresh"):
            consent = BrowserConsent(auth) if auth.get("consent") == "browser" else FollowedConsent()
            metadata = client_metadata(consent.redirect_uri, auth)
            self._entries[url] = Prepared(url, metadata, MemoryStorage(), consent)
        return self._entries[url]


@dataclass
class Prepared:
    url: str
    metadata: Any
    storage: MemoryStorage
    consent: FollowedConsent | BrowserConsent

    def construct(self) -> Any:
        return sdk_auth.OAuthClientProvider(
            server_url=self.url,
            client_metadata=self.metadata,
            storage=self.storage,
            redirect_handler=self.consent.redirect,
            callback_handler=self.consent.callback,
        )


def client_metadata(redirect_uri: str, auth: dict[str, Any]) -> Any:
    return sdk_types.OAuthClientMetadata.model_validate(
        {
            "client_name": auth.get("client_name") or "mcpace",
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "scope": auth.get("scope"),
        }
    )


class MemoryStorage:
    """The SDK's TokenStorage protocol, in memory."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client_info: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client_info

    async def set_client_info(self, client_info: Any) -> None:
        self.client_info = client_info


class FollowedConsent:
    """Follows the authorization URL as far as the redirect that carries the code."""

    redirect_uri = FOLLOW_REDIRECT_URI

    def __init__(self) -> None:
        self._answer: dict[str, str] = {}

    async def redirect(self, url: str) -> None:
        location = await asyncio.to_thread(location_of, url)
        if not location.startswith(self.redirect_uri):
            raise ConsentRefused("the authorization server didn't redirect to the client's callback address")
        self._answer = query_of(location)

    async def callback(self) -> Any:
        return authorization_code(self._answer)


class BrowserConsent:
    """Opens the browser, and waits for it on a callback server on localhost."""

    def __init__(self, auth: dict[str, Any]) -> None:
        self._limit_s = float(auth.get("consent_timeout_s") or BROWSER_LIMIT_S)
        self._answer: dict[str, str] = {}
        self._arrived = threading.Event()
        # localhost only: the code that arrives here is worth a token.
        server = ThreadingHTTPServer(("127.0.0.1", int(auth.get("callback_port") or 0)), self._handler())
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.redirect_uri = f"http://localhost:{server.server_address[1]}/callback"

    async def redirect(self, url: str) -> None:
        self._arrived.clear()
        print(f"Waiting for your consent in the browser: {url}", file=sys.stderr, flush=True)
        await asyncio.to_thread(webbrowser.open, url)

    async def callback(self) -> Any:
        if not await asyncio.to_thread(self._arrived.wait, self._limit_s):
            raise ConsentRefused(f"nobody consented in the browser within {self._limit_s:g} s")
        return authorization_code(self._answer)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        arrived: Callable[[dict[str, str]], None] = self._arrive

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                if urllib.parse.urlsplit(self.path).path != "/callback":
                    self.send_error(404)
                    return
                body = b"Thank you. You can close this page and go back to mcpace.\n"
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                arrived(query_of(self.path))

            def log_message(self, format: str, *arguments: Any) -> None:
                pass  # the request line has the code in it

        return Handler

    def _arrive(self, answer: dict[str, str]) -> None:
        self._answer = answer
        self._arrived.set()


def authorization_code(answer: dict[str, str]) -> Any:
    if "code" not in answer:
        reason = answer.get("error_description") or answer.get("error") or "no code in the redirect"
        raise ConsentRefused(f"authorization was refused: {reason}")
    result_class = getattr(sdk_types, "AuthorizationCodeResult", None)
    if result_class is None:
        return answer["code"], answer.get("state")
    return result_class(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))


def query_of(url: str) -> dict[str, str]:
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))


def location_of(url: str) -> str:
    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *arguments: Any, **named: Any) -> None:
            return None

    # Scripted targets are on this machine: a proxy from the environment has no business here.
    browser = urllib.request.build_opener(NoRedirect, urllib.request.ProxyHandler({}))
    try:
        with browser.open(url, timeout=FOLLOW_LIMIT_S) as reply:
            raise ConsentRefused(f"the authorization server answered {reply.status} instead of a redirect")
    except urllib.error.HTTPError as error:
        location = error.headers.get("Location")
        if error.code not in (302, 303, 307) or not location:
            raise ConsentRefused(f"the authorization server answered {error.code} instead of a redirect") from None
        return urllib.parse.urljoin(url, location)
