"""The published server (`published`), or a server of the SDK alone (`sdk`)."""

import sys

if sys.argv[1] == "published":
    from datawrapper_mcp.server import main

    main()
else:
    from mcp.server.fastmcp import FastMCP

    mcp = FastMCP("charts")

    @mcp.tool()
    async def list_charts() -> str:
        """Lists the charts."""
        return "none"

    mcp.run()
