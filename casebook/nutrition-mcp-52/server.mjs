// Serves the tool `log_meal` behind a bearer token, which another service verifies on each request, or once a minute.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

// The database, 80 ms away.
const database = createServer((_, response) => setTimeout(() => response.end('[{"user_id":1}]'), 80)).listen(0, "127.0.0.1");
await once(database, "listening");

const kept = new Map();

async function getUserIdByToken(token) {
  const before = kept.get(token);
  if (before && Date.now() < before.until) return before.user;
  const rows = await (await fetch(`http://127.0.0.1:${database.address().port}/tokens?token=eq.${token}`)).json();
  if (process.argv[2] === "kept") kept.set(token, { user: rows[0].user_id, until: Date.now() + 60_000 });
  return rows[0].user_id;
}

const server = new McpServer({ name: "nutrition-mcp", version: "1.13.2" });
const logMeal = async ({ meal }) => ({ content: [{ type: "text", text: `logged ${meal}` }] });
server.registerTool("log_meal", { description: "Logs a meal.", inputSchema: { meal: z.string() } }, logMeal);
const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
await server.connect(transport);

createServer(async (request, response) => {
  const token = request.headers.authorization?.replace("Bearer ", "");
  if (token && (await getUserIdByToken(token))) await transport.handleRequest(request, response);
  else response.writeHead(401).end();
}).listen(Number(process.env.PORT), "127.0.0.1");
