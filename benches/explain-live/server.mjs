// A server of one tool that takes a known time: `server.mjs http|stdio SECONDS PORT NODE_MODULES`.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

const [kind, seconds, port, modules] = process.argv.slice(2);
const sdk = `${modules}/@modelcontextprotocol/sdk/dist/esm`;
const { McpServer } = await import(`${sdk}/server/mcp.js`);
const { StdioServerTransport } = await import(`${sdk}/server/stdio.js`);
const { StreamableHTTPServerTransport } = await import(`${sdk}/server/streamableHttp.js`);

function makeServer() {
  const server = new McpServer({ name: "live", version: "1" });
  server.registerTool("work", { annotations: { readOnlyHint: true } }, async () => {
    await pause(1000 * Number(seconds));
    return { content: [{ type: "text", text: "done" }] };
  });
  return server;
}

if (kind === "stdio") {
  await makeServer().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  createServer(async (request, response) => {
    if (!request.url.startsWith("/mcp")) return response.writeHead(404).end();
    let transport = sessions.get(request.headers["mcp-session-id"]);
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await makeServer().connect(transport);
    }
    await transport.handleRequest(request, response);
  }).listen(Number(port), "127.0.0.1");
}
