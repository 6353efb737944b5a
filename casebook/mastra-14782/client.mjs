// Calls a tool four times and asks for its progress.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "mastra", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.env.MCP_URL)));
for (let call = 0; call < 4; call++) {
  await client.callTool({ name: "import_rows", arguments: {} }, undefined, { onprogress: () => {} });
}
await client.close();
process.exit(0);
