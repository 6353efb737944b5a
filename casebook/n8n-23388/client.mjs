// Executes a workflow 1600 times, each with a client of its own, which is left open or ended.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

async function execute(number) {
  const transport = new StreamableHTTPClientTransport(new URL(process.env.MCP_URL));
  const client = new Client({ name: "n8n-nodes-langchain.mcpClient", version: "1.0.0" });
  await client.connect(transport);
  await client.callTool({ name: "echo", arguments: { text: `execution ${number}` } });
  if (process.argv[2] === "ended") {
    await transport.terminateSession();
    await client.close();
  }
}

for (let number = 0; number < 1600; number++) await execute(number);
process.exit(0);
