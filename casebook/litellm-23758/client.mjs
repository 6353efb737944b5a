// Calls a tool eight times in one session.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "casebook", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.env.MCP_URL)));
for (let call = 0; call < 8; call++) await client.callTool({ name: "echo", arguments: { text: `call ${call}` } });
await client.close();
