// Opens 600 sessions one after another, makes five calls in each, and ends it with DELETE.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

for (let number = 0; number < 600; number++) {
  const transport = new StreamableHTTPClientTransport(new URL(process.env.MCP_URL));
  const client = new Client({ name: "casebook", version: "1.0.0" });
  client.onerror = () => {};
  await client.connect(transport);
  for (let call = 0; call < 5; call++) await client.callTool({ name: "echo", arguments: { text: `call ${call}` } });
  await transport.terminateSession().catch(() => {});
  await client.close();
}
process.exit(0);
