// Polls the health of one client ten times, each by two listings of tools, or by a ping.
import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "llm-agent", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.env.MCP_URL)));
const tools = (await client.listTools()).tools;

async function checkHealth() {
  if (process.argv[2] === "ping") return client.ping();
  await client.listTools();
  await client.listTools();
}

for (let poll = 0; poll < 10; poll++) {
  await checkHealth();
  await sleep(300);
}
await client.callTool({ name: tools[0].name, arguments: { text: "a" } });
await client.close();
