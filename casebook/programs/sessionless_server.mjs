// Serves the tool `echo` over Streamable HTTP without sessions. Answers GET with get=text, get=json or get=405.
import { createServer } from "node:http";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const get = process.argv[2].split("=")[1];

async function answerPost(request, response) {
  const server = new McpServer({ name: "casebook", version: "1.0.0" });
  server.tool("echo", "Returns the text.", { text: z.string() }, async ({ text }) => ({ content: [{ type: "text", text }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on("close", () => server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response);
}

createServer(async (request, response) => {
  if (request.method === "POST") await answerPost(request, response);
  else if (request.method !== "GET" || get === "405") response.writeHead(405, { allow: "POST" }).end();
  else if (get === "text") response.writeHead(200, { "content-type": "text/plain" }).end("This is an MCP server.\n");
  else response.writeHead(200, { "content-type": "application/json" }).end('{"name":"casebook"}');
}).listen(Number(process.env.PORT), "127.0.0.1");
