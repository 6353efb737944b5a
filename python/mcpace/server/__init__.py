"""The Python face of the runtime: functions with type hints become tools, resources and prompts.

Design constraint: everything that can be known is worked out at registration; a call runs the author's function and as
little else as can be. Light to import: pydantic, and nothing that a plain server doesn't need.

Deliberately absent: the protocol and its transports, which are the compiled part's.
"""
