"""Probe of djangorestframework-mcp-server's ``MCPServer``.

Functions used: ``server.tools.get`` and ``.all``, ``binding.spec`` (``service`` or ``selector``, ``input_serializer``),
``handlers.handle_tools_call.handle_tools_call``, ``server._call_context`` (without it ``MCPCallContext`` and
``TokenInfo``), ``server.urls``, ``server.async_urls``. Django provides the test client, and the server where there is
no uvicorn.

The caller is anonymous (``AnonymousUser``). The server's URLs are mounted at ``/mcp/`` instead of the project's own
URLs. ``ALLOWED_HOSTS`` also allows loopback and the test client. All other settings, including middleware, are the
project's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Any

from mcpace_layers import asgi
from mcpace_layers.django_calls import keywords, validate_arguments
from mcpace_layers.layer import FunctionLayer, Layer
from mcpace_layers.probe import HANDLER, IN_PROCESS, Probe, Served
from mcpace_layers.problem import SETUP, Problem, Unmeasured, tool_failure

PATH = "/mcp/"
ROOT = "mcpace_layers_urls"
REVISION = "2025-06-18"
HOSTS = ("testserver", "127.0.0.1", "localhost")


class DrfMcp(Probe):
    """Probe of djangorestframework-mcp-server."""

    sdk = "djangorestframework-mcp-server"
    package = "djangorestframework-mcp-server"

    def tools(self) -> list[str]:
        return [binding.name for binding in self.target.server.tools.all()]

    def direct(self) -> Layer:
        spec = self.target.server.tools.get(self.target.tool).spec
        function = getattr(spec, "service", None) or getattr(spec, "selector", None)
        if function is None:
            raise Unmeasured("the tool has no single function that could be called")
        data = validate_arguments(getattr(spec, "input_serializer", None), self.target)
        return self.call_directly(function, keywords(function, data))

    def handler(self) -> Layer:
        from rest_framework_mcp.handlers.handle_tools_call import handle_tools_call

        params = {"name": self.target.tool, "arguments": self.target.arguments}
        includes = (
            "handle_tools_call: name lookup, permissions, rate limits, the input serializer, the call (in a "
            "transaction where the spec is atomic), the output serializer, the result's shaping"
        )
        return FunctionLayer(
            HANDLER, includes, partial(self._check, HANDLER), partial(handle_tools_call, params, self._context())
        )

    def in_process(self) -> Layer:
        from django.test import Client

        self._mount("urls")
        client = Client()
        headers = {"HTTP_ACCEPT": "application/json, text/event-stream"}
        post = partial(client.post, PATH, content_type="application/json")
        hello = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "mcpace", "version": "1"}}
        reply = post(_body(1, "initialize", hello), **headers)
        if reply.status_code != 200:
            # The backend requires a token or a proxy's header, so no tool can be called in process.
            raise Unmeasured(f"initialize was answered HTTP {reply.status_code} in process: {_body_text(reply)}")
        agreed = _result(reply, "initialize").get("protocolVersion", REVISION)
        headers["HTTP_MCP_PROTOCOL_VERSION"] = agreed
        session = reply.headers.get("Mcp-Session-Id")
        if session:
            headers["HTTP_MCP_SESSION_ID"] = session
        body = _body(2, "tools/call", {"name": self.target.tool, "arguments": self.target.arguments})
        includes = "Django's test client: the project's middleware, the view, JSON-RPC both ways, no socket"
        return FunctionLayer(IN_PROCESS, includes, self._check_reply, partial(post, body, **headers))

    def serve(self) -> Served:
        try:
            import uvicorn  # noqa: F401
        except ModuleNotFoundError:
            return self._serve_wsgi()
        from django.core.asgi import get_asgi_application

        self._mount("async_urls")
        return asgi.serve(get_asgi_application(), PATH, lifespan="off")

    def _serve_wsgi(self) -> Served:
        """Serves with Django's threaded development server."""
        from django import get_version
        from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
        from django.core.wsgi import get_wsgi_application

        class Quiet(WSGIRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._mount("urls")
        server = ThreadedWSGIServer(("127.0.0.1", 0), Quiet, ipv6=False, allow_reuse_address=True)
        server.set_app(get_wsgi_application())
        by = f"Django {get_version()}'s own threaded server (there is no uvicorn in this environment)"
        return Served(f"http://127.0.0.1:{server.server_port}{PATH}", by, server.serve_forever)

    def _context(self) -> Any:
        from django.contrib.auth.models import AnonymousUser

        server, user = self.target.server, AnonymousUser()
        if hasattr(server, "_call_context"):
            return server._call_context(user=user)
        from django.http import HttpRequest
        from rest_framework_mcp.auth.types.token_info import TokenInfo
        from rest_framework_mcp.handlers.types.context import MCPCallContext

        request = HttpRequest()
        request.user, request.method = user, "POST"
        return MCPCallContext(
            http_request=request,
            token=TokenInfo(user=user),
            tools=server.tools,
            resources=server.resources,
            prompts=server.prompts,
            protocol_version=REVISION,
        )

    def _mount(self, attribute: str) -> None:
        """Mounts the server's URLs as the only URLs of the project."""
        from django.conf import settings
        from django.urls import clear_url_caches, include, path

        urls = getattr(self.target.server, attribute)
        root: Any = ModuleType(ROOT)
        # Newer releases return the triple that path() takes, older ones a list.
        root.urlpatterns = [path(PATH[1:], urls if isinstance(urls, tuple) else include(urls))]
        sys.modules[ROOT] = root
        settings.ROOT_URLCONF = ROOT
        settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, *HOSTS]
        clear_url_caches()

    def _check(self, layer: str, result: Any) -> None:
        if not isinstance(result, Mapping):
            raise tool_failure(self.target.tool, layer, getattr(result, "message", result))
        if result.get("isError"):
            raise tool_failure(self.target.tool, layer, json.dumps(result.get("content"), default=str))

    def _check_reply(self, reply: Any) -> None:
        self._check(IN_PROCESS, _result(reply, self.target.tool))


def _body(number: int, method: str, params: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def _result(reply: Any, what: str) -> dict[str, Any]:
    """Result in a reply of the test client."""
    if reply.status_code != 200:
        raise Problem(SETUP, f"{what} was answered HTTP {reply.status_code} in process: {_body_text(reply)}")
    message = json.loads(reply.content)
    result = message.get("result")
    if not isinstance(result, dict):
        raise Problem(SETUP, f"{what} was answered with an error in process: {json.dumps(message.get('error'))[:300]}")
    return result


def _body_text(reply: Any) -> str:
    return " ".join(reply.content[:300].decode("utf-8", "replace").split())
