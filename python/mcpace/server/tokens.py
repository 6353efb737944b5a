"""Documented import path of the token verifiers; they are defined in :mod:`mcpace.server.auth.tokens`."""

from mcpace.server.auth.tokens import (
    AllowAny,
    IntrospectionTokenVerifier,
    JWTVerifier,
    StaticTokenVerifier,
    TokensUnavailable,
)

__all__ = ["AllowAny", "IntrospectionTokenVerifier", "JWTVerifier", "StaticTokenVerifier", "TokensUnavailable"]
