// Serves the tool `echo` behind OAuth. An access token is good for six requests; then the client has to renew it.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const server = new McpServer({ name: "casebook", version: "1.0.0" });
server.tool("echo", "Returns the text.", { text: z.string() }, async ({ text }) => ({ content: [{ type: "text", text }] }));
const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, enableJsonResponse: true });
await server.connect(transport);

const usesLeft = new Map();

function newToken() {
  const token = randomUUID();
  usesLeft.set(token, 6);
  return { access_token: token, token_type: "Bearer", expires_in: 3600, refresh_token: randomUUID() };
}

function documentAt(path, origin) {
  if (path === "/token") return newToken();
  if (path.startsWith("/.well-known/oauth-protected-resource")) {
    return { resource: `${origin}/mcp`, authorization_servers: [origin] };
  }
  if (!path.startsWith("/.well-known/oauth-authorization-server")) return undefined;
  const endpoints = { authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token` };
  return { issuer: origin, ...endpoints, response_types_supported: ["code"], code_challenge_methods_supported: ["S256"] };
}

createServer(async (request, response) => {
  const origin = `http://${request.headers.host}`;
  const document = documentAt(new URL(request.url, origin).pathname, origin);
  const token = request.headers.authorization?.replace("Bearer ", "");
  if (document) {
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(document));
  } else if (!usesLeft.get(token)) {
    const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`;
    response.writeHead(401, { "www-authenticate": `Bearer resource_metadata="${metadata}"` }).end();
  } else {
    usesLeft.set(token, usesLeft.get(token) - 1);
    await transport.handleRequest(request, response);
  }
}).listen(Number(process.env.PORT), "127.0.0.1");
