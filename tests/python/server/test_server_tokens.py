"""Verifiers of tokens in Python: signed ones, introspected ones, lists; over HTTP, and called as any other verifier."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import http.client
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

import mcpace
from mcpace import (
    AccessToken,
    AllowAny,
    AuthSettings,
    IntrospectionTokenVerifier,
    JWTVerifier,
    MCPServer,
    RateLimit,
    StaticTokenVerifier,
    TokensUnavailable,
    TokenVerifier,
    UnsupportedOption,
    get_access_token,
)
from mcpace.server.auth.bearer_tokens import http_options
from support.python_server import Client, served
from support.serve_process import serving

RESOURCE = "https://mcp.example/mcp"
SECRET = "0123456789abcdef0123456789abcdef"
LIMIT_S = 60


def settings(**more: Any) -> AuthSettings:
    given = {"issuer_url": "https://id.example", "resource_server_url": RESOURCE, "required_scopes": ["read"]}
    return AuthSettings(**(given | more))


def whoami(verifier: Any, **more: Any) -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("t", token_verifier=verifier, auth=settings(**more))

    @server.tool()
    def who() -> str:
        token = get_access_token()
        assert type(token) is AccessToken
        return json.dumps(token.model_dump(exclude={"token"}))

    return server


# Tokens --------------------------------------------------------------------------------------------------------------


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwt(head: dict[str, Any], claims: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    signed = ".".join(text(json.dumps(part).encode()) for part in (head, claims))
    return f"{signed}.{text(sign(signed.encode()))}"


def claims(**more: Any) -> dict[str, Any]:
    given = {"iss": "https://id.example", "aud": RESOURCE, "sub": "ada", "client_id": "app", "scope": "read write"}
    return {k: v for k, v in (given | {"exp": int(time.time()) + 600} | more).items() if v is not None}


def shared(**more: Any) -> str:
    """Signed with the secret."""
    sign = lambda data: hmac.digest(SECRET.encode(), data, hashlib.sha256)  # noqa: E731
    return jwt({"alg": "HS256"}, claims(**more), sign)


class Keys:
    """An issuer's RSA key, of OpenSSL's making."""

    def __init__(self, folder: Path) -> None:
        self._private = folder / "key.pem"
        self._run("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", str(self._private))
        self.public = self._run("pkey", "-in", str(self._private), "-pubout").decode()
        modulus = self._run("rsa", "-in", str(self._private), "-modulus", "-noout").decode().strip()
        number = bytes.fromhex(modulus.removeprefix("Modulus="))
        self.jwks = {"keys": [{"kty": "RSA", "kid": "k", "use": "sig", "n": text(number), "e": "AQAB"}]}

    def token(self, kid: str = "k", **more: Any) -> str:
        sign = lambda data: self._run("dgst", "-sha256", "-sign", str(self._private), stdin=data)  # noqa: E731
        return jwt({"alg": "RS256", "kid": kid}, claims(**more), sign)

    @staticmethod
    def _run(*words: str, stdin: bytes = b"") -> bytes:
        done = subprocess.run(["openssl", *words], input=stdin, capture_output=True, check=True, timeout=LIMIT_S)
        return done.stdout


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@contextmanager
def issuer(answer: Callable[[str, dict[str, str]], tuple[int, Any]]) -> Iterator[tuple[str, list[str]]]:
    """An identity provider: its URL, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            form = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            asked.append(self.path)
            status, said = answer(self.path, {name: values[0] for name, values in parse_qs(form).items()})
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    provider = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=provider.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{provider.server_port}", asked
    finally:
        provider.shutdown()
        thread.join(LIMIT_S)
        provider.server_close()


def post(port: int, token: str | None) -> tuple[int, str, Any]:
    """Status, challenge and result of a call."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers["MCP-Protocol-Version"] = "2026-07-28"
    headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "who"}
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": "2026-07-28", f"{prefix}clientCapabilities": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "who", "_meta": meta}}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    connection.request("POST", "/mcp", json.dumps(message), headers)
    reply = connection.getresponse()
    body = json.loads(reply.read() or "null")
    connection.close()
    return reply.status, reply.getheader("www-authenticate") or "", body


def said(port: int, token: str) -> dict[str, Any]:
    status, _, body = post(port, token)
    assert status == 200, body
    found: dict[str, Any] = json.loads(body["result"]["content"][0]["text"])
    return found


# Signed tokens -------------------------------------------------------------------------------------------------------


def test_signed_tokens_are_verified_by_the_issuers_keys(keys: Keys) -> None:
    with issuer(lambda path, form: (200, keys.jwks)) as (url, asked):
        verifier = JWTVerifier(jwks_uri=f"{url}/jwks", issuer="https://id.example", audience=RESOURCE)
        with served(whoami(verifier)) as port:
            good = keys.token(tenant=7)
            for _ in range(3):
                access = said(port, good)
            assert (access["client_id"], access["subject"], access["scopes"]) == ("app", "ada", ["read", "write"])
            assert (access["resource"], access["claims"]["tenant"]) == (RESOURCE, 7)
            assert access["expires_at"] == access["claims"]["exp"]
            for status, error, token in [
                (401, "", None),
                (401, "invalid_token", "rubbish"),
                (401, "invalid_token", good[:-8] + "AAAAAAAA"),
                (401, "invalid_token", keys.token(exp=int(time.time()) - 60)),
                (401, "invalid_token", keys.token(aud="https://other.example")),
                (401, "invalid_token", keys.token(iss="https://evil.example")),
                (401, "invalid_token", keys.token(kid="unknown")),
                (401, "invalid_token", jwt({"alg": "none"}, claims(), lambda data: b"")),
                (401, "invalid_token", shared()),
                (403, "insufficient_scope", keys.token(scope="write")),
            ]:
                found, challenge, _ = post(port, token)
                assert found == status, (token, challenge)
                assert f'error="{error}"' in challenge if error else "error=" not in challenge
                assert 'resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"' in challenge
        assert asked == ["/jwks"]


def test_no_python_runs_for_a_token(keys: Keys) -> None:
    """The event loop stands still while tokens are refused."""
    verifier = JWTVerifier(public_key=keys.public, audience=RESOURCE)
    server = whoami(verifier)
    entered, release = threading.Event(), threading.Event()

    @server.tool()
    async def block() -> str:
        entered.set()
        assert release.wait(LIMIT_S)
        return "done"

    with served(server) as port:
        caller = Client(port, headers={"Authorization": f"Bearer {keys.token()}"})
        results: list[str] = []
        thread = threading.Thread(target=lambda: results.append(caller.text("block")))
        thread.start()
        assert entered.wait(LIMIT_S)
        assert post(port, "rubbish")[0] == 401
        assert post(port, keys.token(scope="write"))[0] == 403
        release.set()
        thread.join(LIMIT_S)
    assert results == ["done"]


def test_a_token_must_be_meant_for_the_server_unless_that_is_waived(keys: Keys) -> None:
    other, none = keys.token(aud="https://other.example/mcp"), keys.token(aud=None)
    with served(whoami(JWTVerifier(public_key=keys.public))) as port:
        assert [post(port, token)[0] for token in (keys.token(aud=[RESOURCE + "/"]), other, none)] == [200, 401, 401]
    with served(whoami(JWTVerifier(public_key=keys.public), validate_token_resource=False)) as port:
        assert [post(port, token)[0] for token in (other, none)] == [200, 200]
    verifier = JWTVerifier(public_key=keys.public, audience="https://other.example/mcp")
    with served(whoami(verifier)) as port:
        assert post(port, other)[0] == 200
    with served(whoami(verifier, validate_token_resource=True)) as port:
        assert post(port, other)[0] == 401


def test_a_verifiers_scopes_are_the_servers(keys: Keys) -> None:
    with served(whoami(JWTVerifier(public_key=keys.public, required_scopes=["admin"]))) as port:
        status, challenge, _ = post(port, keys.token())
        assert status == 403
        assert 'scope="read admin"' in challenge
        assert post(port, keys.token(scope=["read", "admin"]))[0] == 200


def test_why_tokens_are_refused_is_said_and_never_the_token(keys: Keys, caplog: pytest.LogCaptureFixture) -> None:
    wrong = keys.token(aud="https://other.example")
    caplog.set_level(logging.INFO, "mcpace.server.tokens")
    with served(whoami(JWTVerifier(public_key=keys.public, audience=RESOURCE))) as port:
        for _ in range(20):
            assert post(port, wrong)[0] == 401
        assert post(port, "rubbish")[0] == 401
    heard = [record for record in caplog.records if record.name == "mcpace.server.tokens"]
    levels = [(record.levelname, record.getMessage()) for record in heard]
    assert levels[0] == ("WARNING", "a token was refused: it was issued for another audience")
    assert ("INFO", "a token was refused: it is no signed JWT with an algorithm that is known") in levels
    assert wrong not in caplog.text


def test_a_verifier_of_ones_own_kind_is_asked() -> None:
    class Stricter(JWTVerifier):
        async def verify_token(self, token: str) -> AccessToken | None:
            access = await super().verify_token(token)
            return access if access and access.subject == "ada" else None

    verifier = Stricter(public_key=SECRET, algorithm="HS256", audience=RESOURCE)
    with served(whoami(verifier)) as port:
        assert said(port, shared())["subject"] == "ada"
        assert post(port, shared(sub="bob"))[0] == 401


@pytest.mark.parametrize(
    ("audience", "status"),
    [(RESOURCE, 200), (["https://other.example", RESOURCE], 200), ("https://other.example", 401)],
)
def test_a_derived_verifier_asks_for_what_its_kind_would(audience: Any, status: int) -> None:
    class Derived(JWTVerifier):
        async def verify_token(self, token: str) -> AccessToken | None:
            return await super().verify_token(token)

    with served(whoami(Derived(public_key=SECRET, algorithm="HS256", required_scopes=["read"]))) as port:
        assert post(port, shared(aud=audience, scope="read"))[0] == status
        # A token without the required scope is refused as invalid, because the verifier itself requires the scope.
        assert post(port, shared(aud=audience, scope="write"))[0] == 401


class Derived(JWTVerifier):
    """Changes nothing, and is Python's all the same."""

    async def verify_token(self, token: str) -> AccessToken | None:
        return await super().verify_token(token)


@pytest.mark.parametrize("kind", [JWTVerifier, Derived])
def test_callers_of_two_issuers_are_two_whatever_their_subjects(kind: type[JWTVerifier]) -> None:
    issuers = ["https://id.example", "https://other.example"]
    server = whoami(kind(public_key=SECRET, algorithm="HS256", issuer=issuers))

    @server.tool(rate_limits=[RateLimit("1/hour")])
    def once() -> str:
        return "done"

    with served(server) as port:
        clients = [Client(port, "legacy", headers={"Authorization": f"Bearer {shared(iss=one)}"}) for one in issuers]
        for client in clients:
            client.begin()
            assert client.text("once") == "done"
        assert "error" in clients[0].call("once")
        mine, other = clients
        other.session = mine.session
        other.once("tools/list", {}, {})
        assert other.status == 404


def test_what_a_verifier_changes_of_a_token_counts() -> None:
    class Renaming(JWTVerifier):
        async def verify_token(self, token: str) -> AccessToken | None:
            access = await super().verify_token(token)
            assert access is not None and access.expires_at is not None
            if access.claims and access.claims.get("cut"):
                return access.model_copy(update={"expires_at": int(time.time()) - 1})
            return access.model_copy(update={"subject": "all"})

    server = whoami(Renaming(public_key=SECRET, algorithm="HS256", issuer=["https://id.example", "https://b"]))

    @server.tool(rate_limits=[RateLimit("1/hour")])
    def once() -> str:
        return "done"

    with served(server) as port:
        ada, bob = (Client(port, headers={"Authorization": f"Bearer {shared(sub=one)}"}) for one in ("ada", "bob"))
        assert ada.text("once") == "done"
        assert "error" in bob.call("once")
        assert post(port, shared(cut=True))[0] == 401


@pytest.mark.parametrize("kind", [JWTVerifier, Derived])
def test_clocks_may_differ_for_all_that_a_token_is_shown_for(kind: type[JWTVerifier]) -> None:
    server = whoami(kind(public_key=SECRET, algorithm="HS256", leeway_seconds=3600))

    @server.tool(permissions=[lambda asked: True])
    def guarded() -> str:
        return "here"

    async def middleware(context: Any, call_next: Any) -> Any:
        return await call_next(context)

    server.middleware.append(middleware)
    past = int(time.time()) - 60
    with served(server) as port:
        client = Client(port, "legacy", headers={"Authorization": f"Bearer {shared(exp=past)}"})
        client.begin()
        assert client.text("guarded") == "here"
        assert len(client.request("tools/list")["result"]["tools"]) == 2
        assert json.loads(client.text("who"))["expires_at"] == past
        # A stream that ends with the token begins all the same.
        stream = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        given = {"Accept": "text/event-stream", "Mcp-Session-Id": client.session, **client.headers}
        stream.request("GET", "/mcp", headers={k: v for k, v in given.items() if v})
        assert stream.getresponse().readline() != b""
        stream.close()


# Tokens that their issuer is asked about -----------------------------------------------------------------------------


def test_an_issuer_is_asked_once_for_a_token() -> None:
    def answer(path: str, form: dict[str, str]) -> tuple[int, Any]:
        if form["token"] == "down":
            return 500, None
        return 200, {"active": form["token"] == "good", "sub": "ada", "client_id": "app", "scope": "read", "org": "x"}

    with issuer(answer) as (url, asked):
        verifier = IntrospectionTokenVerifier(
            introspection_url=f"{url}/introspect", client_id="server", client_secret="s", required_scopes=["read"]
        )
        with served(whoami(verifier)) as port:
            for _ in range(5):
                access = said(port, "good")
                assert (access["subject"], access["claims"]["org"]) == ("ada", "x")
                assert post(port, "bad")[0] == 401
            assert len(asked) == 2
            assert post(port, "down")[0] == 503
            assert post(port, "down")[0] == 503
            assert len(asked) == 4
        with pytest.raises(TokensUnavailable):
            asyncio.run(verifier.verify_token("down"))


FORKED = """
import asyncio, os, sys
from mcpace import IntrospectionTokenVerifier

verifier = IntrospectionTokenVerifier(introspection_url=sys.argv[1], client_id="server", client_secret="s")


def is_good(token):
    return asyncio.run(verifier.verify_token(token)) is not None


assert is_good("before")
child = os.fork()
if not child:
    os._exit(0 if is_good("after") and is_good("before") else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert is_good("before")
"""


def test_a_forked_child_asks_the_issuer_itself() -> None:
    with issuer(lambda path, form: (200, {"active": True, "client_id": "app"})) as (url, asked):
        command = [sys.executable, "-c", FORKED, f"{url}/introspect"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")
        # A child doesn't inherit the parent's cached answers, so each process asks once for a token.
        assert len(asked) == 3


def test_a_token_that_python_cannot_read_is_never_nobody() -> None:
    """A caller that a function takes for nobody could be taken for the owner of the server's own pipe."""
    sign = lambda data: hmac.digest(SECRET.encode(), data, hashlib.sha256)  # noqa: E731
    # More digits than Python's integers are read from.
    body = json.dumps(claims(x="HERE")).replace('"HERE"', "9" * 5_000)
    signed = f"{text(json.dumps({'alg': 'HS256'}).encode())}.{text(body.encode())}"
    unreadable = f"{signed}.{text(sign(signed.encode()))}"
    verifier = JWTVerifier(public_key=SECRET, algorithm="HS256", audience=RESOURCE)
    called: list[Any] = []

    server: MCPServer[Any] = MCPServer("t", token_verifier=verifier, auth=settings())

    @server.tool()
    def who() -> str:
        called.append(get_access_token())
        return "done"

    with served(server) as port:
        status, _, answer = post(port, unreadable)
        assert answer is None or "error" in answer or answer["result"]["isError"], (status, answer)
    assert None not in called
    with pytest.raises(ValueError):
        asyncio.run(verifier.verify_token(unreadable))
    nested = jwt({"alg": "HS256"}, claims(x=[[[[[]]]]]), sign)
    deeper: list[Any] = []
    for _ in range(100):
        deeper = [deeper]
    assert asyncio.run(verifier.verify_token(nested)) is not None
    assert asyncio.run(verifier.verify_token(jwt({"alg": "HS256"}, claims(x=deeper), sign))) is None


@pytest.mark.parametrize(
    ("audience", "checks", "is_said"),
    [(None, None, True), (RESOURCE, None, False), (None, True, False), (None, False, False)],
)
def test_introspection_that_is_held_to_no_audience_is_said(
    audience: Any, checks: bool | None, is_said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    verifier = IntrospectionTokenVerifier(
        introspection_url="https://auth.example", client_id="me", client_secret="s", audience=audience
    )
    settings = AuthSettings.model_validate(
        {
            "issuer_url": "https://auth.example",
            "resource_server_url": RESOURCE,
            "validate_token_resource": checks,
        }
    )
    http_options(settings, verifier)
    assert [record.getMessage()[:21] for record in caplog.records] == (["Introspected tokens a"] if is_said else [])


def test_without_a_cache_each_call_asks() -> None:
    with issuer(lambda path, form: (200, {"active": True, "client_id": "app"})) as (url, asked):
        for keeps, more in ((False, {"cache_ttl_seconds": None}), (False, {"max_cache_size": 0}), (True, {})):
            asked.clear()
            verifier = IntrospectionTokenVerifier(introspection_url=url, client_id="me", client_secret="s", **more)

            async def twice(verifier: IntrospectionTokenVerifier = verifier) -> None:
                for _ in range(2):
                    assert await verifier.verify_token("t") is not None

            asyncio.run(twice())
            assert len(asked) == (1 if keeps else 2)


# Lists, and any other verifier's place -------------------------------------------------------------------------------


def test_they_are_verifiers_like_any_other(keys: Keys) -> None:
    jwts = JWTVerifier(public_key=keys.public, required_scopes="read")
    listed = StaticTokenVerifier({"t": {"client_id": "app", "scopes": ["read"], "sub": "ada", "plan": "free"}})

    async def verify() -> list[AccessToken | None]:
        return [
            await jwts.verify_token(keys.token()),
            await jwts.load_access_token(keys.token(scope="write")),
            await jwts.verify_token("rubbish"),
            await listed.verify_token("t"),
            await listed.verify_token("u"),
            await AllowAny(scopes=["x"]).verify_token("whatever"),
        ]

    good, poor, bad, known, unknown, anyone = asyncio.run(verify())
    assert good is not None and known is not None and anyone is not None
    assert (good.subject, good.scopes) == ("ada", ["read", "write"])
    assert (poor, bad, unknown) == (None, None, None)
    assert (known.client_id, known.claims and known.claims["plan"]) == ("app", "free")
    assert (anyone.client_id, anyone.scopes) == ("anyone", ["x"])
    for verifier in (jwts, listed, AllowAny()):
        assert isinstance(verifier, TokenVerifier)


LISTED = """
    from mcpace import AllowAny, AuthSettings, MCPServer, StaticTokenVerifier

    tokens = {{"t": {{"client_id": "app", "scopes": ["read"]}}}}
    auth = AuthSettings(issuer_url="https://id.example", resource_server_url="https://mcp.example/mcp")
    mcp = MCPServer("t", token_verifier={verifier}, auth=auth)

    @mcp.tool()
    def who() -> str:
        return "me"
"""


@pytest.mark.parametrize("verifier", ["StaticTokenVerifier(tokens)", "AllowAny()"])
def test_tokens_for_development_are_said_and_serve_this_machine_only(tmp_path: Path, verifier: str) -> None:
    with serving(tmp_path, "server:mcp", "--port", 0, source=LISTED.format(verifier=verifier)) as process:
        process.ready()
        assert post(process.port, "t")[0] == 200
        assert "for development only" in process.said
    with serving(tmp_path, "server:mcp", "--port", 0, "--host", "0.0.0.0") as process:
        assert process.ended() == 2
        assert "loopback" in process.said and "Traceback" not in process.said
    told = verifier.replace(")", ", beyond_loopback=True)").replace("(, ", "(")
    with serving(
        tmp_path, "server:mcp", "--port", 0, "--host", "0.0.0.0", source=LISTED.format(verifier=told)
    ) as process:
        process.ready()
        assert post(process.port, "t")[0] == 200


DERIVED = """
    from mcpace import AllowAny, AuthSettings, MCPServer, StaticTokenVerifier

    class Own({base}):
        async def verify_token(self, token):
            return await super().verify_token(token)

    auth = AuthSettings(issuer_url="https://id.example", resource_server_url="https://mcp.example/mcp")
    mcp = MCPServer("t", token_verifier=Own({options}), auth=auth)
"""


@pytest.mark.parametrize(
    ("base", "options"), [("StaticTokenVerifier", '{"t": {"client_id": "app"}}'), ("AllowAny", "")]
)
def test_what_is_derived_from_those_serves_this_machine_only(tmp_path: Path, base: str, options: str) -> None:
    source = DERIVED.format(base=base, options=options)
    with serving(tmp_path, "server:mcp", "--port", 0, "--host", "0.0.0.0", source=source) as process:
        assert process.ended() == 2
        assert "0.0.0.0 can't be listened on: Own is for development" in process.said
    with serving(tmp_path, "server:mcp", "--port", 0) as process:
        process.ready()
        assert "for development only" in process.said


NEAR_AND_FAR = (("127.0.0.1", 1), ("::1", 1), ("::ffff:127.0.0.1", 1), None, ("192.0.2.7", 1))


@pytest.mark.parametrize("is_for_all", [False, True])
def test_mounted_they_answer_this_machine_only(is_for_all: bool) -> None:
    auth = AuthSettings(issuer_url="https://id.example", resource_server_url="https://mcp.example/mcp")  # type: ignore[arg-type]
    app = MCPServer("t", token_verifier=AllowAny(beyond_loopback=is_for_all), auth=auth).asgi()

    async def status(client: tuple[str, int] | None) -> int:
        sent: list[dict[str, Any]] = []
        body = [{"type": "http.request", "body": b'{"jsonrpc":"2.0","id":1,"method":"ping"}'}]
        forever = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if not body:
                await forever.wait()
            return body.pop()

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        headers = [
            (b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"authorization", b"Bearer t"),
            (b"accept", b"application/json, text/event-stream"),
        ]  # fmt: skip
        scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "client": client}
        await asyncio.wait_for(app(scope, receive, send), 30)
        return int(sent[0]["status"])

    async def all_of_them() -> list[int]:
        return [await status(client) for client in NEAR_AND_FAR]

    *near, far = asyncio.run(all_of_them())
    assert 403 not in near
    assert (far == 403) is not is_for_all


# Contradictory options -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "Either public_key or jwks_uri"),
        ({"public_key": "x", "jwks_uri": "https://id.example/jwks"}, "not both"),
        ({"public_key": "x"}, "PUBLIC KEY"),
        ({"public_key": "short", "algorithm": "HS256"}, "32 bytes"),
        ({"public_key": "-----BEGIN PUBLIC KEY-----" + "x" * 40, "algorithm": "HS256"}, "shared secret"),
        ({"jwks_uri": "https://id.example/jwks", "algorithm": "HS256"}, "shared secret"),
        ({"jwks_uri": "https://id.example/jwks", "algorithm": "none"}, "algorithm"),
        ({"jwks_uri": "http://id.example/jwks"}, "https"),
        ({"jwks_uri": "https://me:hunter2@id.example/jwks"}, "credentials"),
        ({"jwks_uri": "https://id.example/jwks", "jwks_refresh_interval": -1}, "seconds"),
    ],
)
def test_a_verifier_that_cannot_be_is_refused_when_it_is_made(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        JWTVerifier(**options)
    assert "hunter2" not in str(caught.value)


def test_keywords_that_would_have_no_effect_are_refused() -> None:
    for options in ({"http_client": object()}, {"base_url": "https://x"}, {"ssrf_safe": True}):
        with pytest.raises(UnsupportedOption):
            JWTVerifier(jwks_uri="https://id.example/jwks", **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="client_secret_basic"):
        IntrospectionTokenVerifier(
            introspection_url="https://id.example/i", client_id="a", client_secret="b", client_auth_method="none"  # type: ignore[arg-type]
        )  # fmt: skip
    with pytest.raises(ValueError, match="client_id"):
        StaticTokenVerifier({"t": {}})
    assert mcpace.JWTVerifier is JWTVerifier


def test_public_key_that_cannot_be_read_is_refused_with_the_replacement() -> None:
    placeholder = "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEF...\n-----END PUBLIC KEY-----"
    with pytest.raises(UnsupportedOption, match=r"PEM, or jwks_uri"):
        JWTVerifier(public_key=placeholder, audience=RESOURCE)
