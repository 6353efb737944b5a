// Serves the tool `import_rows` with Hono. The route awaits the handling of a request, or only starts it.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { serve } from "@hono/node-server";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { toFetchResponse, toReqRes } from "fetch-to-node";
import { Hono } from "hono";

const server = new McpServer({ name: "mastra", version: "1.0.0" });
server.tool("import_rows", "Imports rows and reports its progress.", async ({ sendNotification, _meta }) => {
  for (let progress = 1; progress <= 5; progress++) {
    await sleep(150);
    await sendNotification({ method: "notifications/progress", params: { progressToken: _meta.progressToken, progress } });
  }
  return { content: [{ type: "text", text: "5 rows" }] };
});
const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
await server.connect(transport);

const app = new Hono();
app.all("/mcp", async (context) => {
  const { req, res } = toReqRes(context.req.raw);
  const handled = transport.handleRequest(req, res);
  if (process.argv[2] === "awaited" && context.req.method === "POST") await handled;
  return toFetchResponse(res);
});
serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(process.env.PORT) });
