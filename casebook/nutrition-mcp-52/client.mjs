// Asks once without a token, as a client does first, and then lists, calls and pings with one.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const url = new URL(process.env.MCP_URL);

async function connect(headers) {
  const client = new Client({ name: "casebook", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}

await connect({}).catch(() => {});
const client = await connect({ authorization: "Bearer casebook" });
for (let round = 0; round < 4; round++) {
  await client.listTools();
  await client.ping();
  await client.callTool({ name: "log_meal", arguments: { meal: `meal ${round}` } });
}
await client.close();
