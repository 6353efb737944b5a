// Opens 1,000 sessions one after another, makes one call in each, and ends it with DELETE.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

for (let number = 0; number < 1000; number++) {
  const transport = new StreamableHTTPClientTransport(new URL(process.env.MCP_URL));
  const client = new Client({ name: "casebook", version: "1.0.0" });
  client.onerror = () => {};
  await client.connect(transport);
  await client.callTool({ name: "echo", arguments: { text: `session ${number}` } });
  await transport.terminateSession().catch(() => {});
  await client.close();
}
process.exit(0);
