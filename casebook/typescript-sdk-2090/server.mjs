// Serves ten tools without sessions, with a new server and transport for each request, or with one server and one session.
import { randomUUID } from "node:crypto";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import express from "express";
import { z } from "zod";

function makeServer() {
  const server = new McpServer({ name: "stateless", version: "1.0.0" });
  const echo = async ({ text }) => ({ content: [{ type: "text", text }] });
  for (let number = 0; number < 10; number++) {
    const name = number ? `echo_${number}` : "echo";
    server.registerTool(name, { description: "Returns the text.", inputSchema: { text: z.string() } }, echo);
  }
  return server;
}

const app = express();
app.use(express.json());
const kept = process.argv[2] === "one-server" && new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
if (kept) await makeServer().connect(kept);
app.post("/mcp", async (request, response) => {
  if (kept) return kept.handleRequest(request, response, request.body);
  const server = makeServer();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
  response.on("close", () => {
    transport.close();
    server.close();
  });
});
app.listen(Number(process.env.PORT), "127.0.0.1");
