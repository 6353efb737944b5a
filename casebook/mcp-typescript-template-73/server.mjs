// Serves ten tools as an app of the template does: before and after the handling of ended sessions.
import { randomUUID } from "node:crypto";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { isInitializeRequest } from "@modelcontextprotocol/sdk/types.js";
import express from "express";
import { z } from "zod";

const endsSessions = process.argv[2] === "after";
const transports = {};

async function transportOf(request) {
  const id = request.headers["mcp-session-id"];
  if (transports[id]) return transports[id];
  if (id || !isInitializeRequest(request.body)) return undefined;
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (session) => {
      transports[session] = transport;
      if (endsSessions) transport.onclose = () => delete transports[session];
    },
  });
  const server = new McpServer({ name: "mcp-typescript-template", version: "1.0.0" });
  const echo = async ({ text }) => ({ content: [{ type: "text", text }] });
  for (let number = 0; number < 10; number++) {
    const name = number ? `echo_${number}` : "echo";
    server.registerTool(name, { description: "Returns the text.", inputSchema: { text: z.string() } }, echo);
  }
  await server.connect(transport);
  return transport;
}

async function handle(request, response) {
  const transport = await transportOf(request);
  if (transport) await transport.handleRequest(request, response, request.body);
  else response.status(400).json({ jsonrpc: "2.0", id: null, error: { code: -32000, message: "No valid session" } });
}

const app = express();
app.use(express.json());
app.post("/mcp", handle);
app.get("/mcp", handle);
if (endsSessions) app.delete("/mcp", handle);
app.listen(Number(process.env.PORT), "127.0.0.1");
