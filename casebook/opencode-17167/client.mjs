// Runs ten steps of an agent's loop, each with one tool call: the tools are listed at each step, or once.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const listEachStep = process.argv[2] === "list-each-step";
const client = new Client({ name: "opencode", version: "1.2.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.env.MCP_URL)));

let kept;
async function tools() {
  if (listEachStep || !kept) kept = (await client.listTools()).tools;
  return kept;
}

for (let step = 0; step < 10; step++) {
  const [tool] = await tools();
  await client.callTool({ name: tool.name, arguments: { text: `step ${step}` } });
}
await client.close();
