// Serves the tool `echo` behind a proxy that ends connections which have been idle for so many milliseconds, or never.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { connect, createServer as createProxy } from "node:net";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const server = new McpServer({ name: "private", version: "1.0.0" });
server.tool("echo", "Returns the text.", { text: z.string() }, async ({ text }) => ({ content: [{ type: "text", text }] }));
const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
await server.connect(transport);

const inner = createServer((request, response) => transport.handleRequest(request, response));
inner.keepAliveTimeout = 60_000;
inner.listen(0, "127.0.0.1", () => {
  const proxy = createProxy((client) => {
    const upstream = connect(inner.address().port, "127.0.0.1");
    const end = () => [client, upstream].forEach((socket) => socket.destroy());
    for (const socket of [client, upstream]) socket.on("error", end).on("close", end);
    client.setTimeout(Number(process.argv[2]), end);
    client.pipe(upstream).pipe(client);
  });
  proxy.listen(Number(process.env.PORT), "127.0.0.1");
});
