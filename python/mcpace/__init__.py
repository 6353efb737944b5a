"""mcpace: finds where the time of an MCP call goes, says why, and serves MCP at close to the protocol's floor cost."""

__version__ = "0.1.0"
