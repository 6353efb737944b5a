// Serves the tool `echo` over SSE only, at /sse.
import { createServer } from "node:http";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { z } from "zod";

const transports = new Map();

async function openStream(response) {
  const transport = new SSEServerTransport("/messages", response);
  transports.set(transport.sessionId, transport);
  const server = new McpServer({ name: "casebook", version: "1.0.0" });
  server.tool("echo", "Returns the text.", { text: z.string() }, async ({ text }) => ({ content: [{ type: "text", text }] }));
  await server.connect(transport);
}

createServer(async (request, response) => {
  const url = new URL(request.url, "http://127.0.0.1");
  const transport = transports.get(url.searchParams.get("sessionId"));
  if (request.method === "GET" && url.pathname === "/sse") await openStream(response);
  else if (request.method === "POST" && transport) await transport.handlePostMessage(request, response);
  else response.writeHead(404).end();
}).listen(Number(process.env.PORT), "127.0.0.1");
