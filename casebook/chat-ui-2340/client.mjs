// Answers six chat messages, each with one tool call: by a client of its own, or by a client that is kept.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const perMessage = process.argv[2] === "client-per-message";

async function connect() {
  const client = new Client({ name: "chat-ui-mcp", version: "0.1.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(process.env.MCP_URL)));
  return { client, tools: (await client.listTools()).tools };
}

let kept = perMessage ? undefined : await connect();
for (let message = 0; message < 6; message++) {
  const { client, tools } = kept ?? (await connect());
  await client.callTool({ name: tools[0].name, arguments: { text: `message ${message}` } });
  if (perMessage) await client.close();
}
await kept?.client.close();
