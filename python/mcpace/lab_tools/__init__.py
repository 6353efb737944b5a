"""The lab as MCP tools for agents: ``mcpace mcp``.

Design constraint: A tool runs a command of the command line in a process of its own, so that a limit or a cancelled
call ends the experiment with everything that it started. The process that serves the tools connects to nothing.
"""
