"""djangorestframework-mcp-server's URLs, for a server under WSGI (``MCP_URLS=urls``) or ASGI (``async_urls``)."""

import os

from django.urls import path
from on_drf_mcp import server

urlpatterns = [path("mcp/", getattr(server, os.environ["MCP_URLS"]))]
