// Serves the tools `echo` and `work` over Streamable HTTP with sessions, by the official TypeScript SDK.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const transports = new Map();

function makeServer() {
  const server = new McpServer({ name: "casebook", version: "1.0.0" });
  server.tool("echo", "Returns the text.", { text: z.string() }, async ({ text }) => ({ content: [{ type: "text", text }] }));
  server.tool("work", "Waits for so many milliseconds.", { ms: z.number() }, async ({ ms }) => {
    await sleep(ms);
    return { content: [{ type: "text", text: "done" }] };
  });
  return server;
}

async function transportOf(request) {
  const id = request.headers["mcp-session-id"];
  if (id) return transports.get(id);
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (session) => transports.set(session, transport),
  });
  transport.onclose = () => transports.delete(transport.sessionId);
  await makeServer().connect(transport);
  return transport;
}

createServer(async (request, response) => {
  const transport = await transportOf(request);
  if (transport) await transport.handleRequest(request, response);
  else response.writeHead(404).end();
}).listen(Number(process.env.PORT), "127.0.0.1");
