"""The MCP endpoint under ASGI."""

from django.urls import include, path

from invoices.mcp import server

urlpatterns = [
    path("mcp", server.async_urls),
    path("", server.async_metadata_urls),
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
]
