// Serves the tool `echo` in one session, with replies of JSON or of events.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const server = new McpServer({ name: "casebook", version: "1.0.0" });
server.tool("echo", "Returns the text.", { text: z.string() }, async ({ text }) => ({ content: [{ type: "text", text }] }));
const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, enableJsonResponse: process.argv[2] === "json" });
await server.connect(transport);
createServer((request, response) => transport.handleRequest(request, response)).listen(Number(process.env.PORT), "127.0.0.1");
