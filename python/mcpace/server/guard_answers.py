"""Import path of :func:`answering` for builds of the compiled part that do not know ``auth.guard_answers`` yet."""

from mcpace.server.auth.guard_answers import answering

__all__ = ["answering"]
