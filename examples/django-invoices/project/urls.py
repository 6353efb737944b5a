"""The MCP endpoint under WSGI."""

from django.urls import include, path

from invoices.mcp import server

urlpatterns = [
    path("mcp", server.urls),
    path("", server.metadata_urls),
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
]
