"""Documented import path of the guards; they are defined in :mod:`mcpace.server.auth.guards`."""

from mcpace.server.auth.guards import AccessRequest, Denied, RateLimit, requires

__all__ = ["AccessRequest", "Denied", "RateLimit", "requires"]
