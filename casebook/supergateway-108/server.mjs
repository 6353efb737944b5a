// Starts supergateway in front of a server over stdio, stateless or with sessions.
if (process.argv[2] === "child") {
  const { McpServer } = await import("@modelcontextprotocol/sdk/server/mcp.js");
  const { StdioServerTransport } = await import("@modelcontextprotocol/sdk/server/stdio.js");
  const server = new McpServer({ name: "my-mcp-server", version: "1.0.0" });
  server.tool("echo", "Returns a text.", async () => ({ content: [{ type: "text", text: "a" }] }));
  await server.connect(new StdioServerTransport());
} else {
  const child = `exec ${process.execPath} ${process.argv[1]} child`;
  const sessions = process.argv[2] === "stateful" ? ["--stateful"] : [];
  process.argv.splice(2, 1, "--stdio", child, "--port", process.env.PORT, "--outputTransport", "streamableHttp", ...sessions);
  await import("supergateway/dist/index.js");
}
