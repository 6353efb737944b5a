// Connects four times for one call each: by Streamable HTTP first and SSE as the fallback, or by the URL's path.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const url = new URL(process.env.MCP_URL);

async function connect() {
  if (process.argv[2] === "http-first" || !url.pathname.endsWith("/sse")) {
    try {
      const client = new Client({ name: "dust-mcp-client", version: "1.0.0" });
      await client.connect(new StreamableHTTPClientTransport(url));
      return client;
    } catch {
      // The server may speak SSE only.
    }
  }
  const client = new Client({ name: "dust-mcp-client", version: "1.0.0" });
  await client.connect(new SSEClientTransport(url));
  return client;
}

for (let number = 0; number < 4; number++) {
  const client = await connect();
  await client.callTool({ name: "echo", arguments: { text: `call ${number}` } });
  await client.close();
}
