// Uses a kept client ten times. Before each use its health is checked by a listing, or not.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, ...args] = JSON.parse(process.env.MCP_COMMAND);
const kept = new Map();

async function connect() {
  const client = new Client({ name: "octofriend", version: "0.5.0" });
  await client.connect(new StdioClientTransport({ command, args, env: process.env }));
  await client.listTools();
  kept.set("server", client);
  return client;
}

async function clientOf() {
  const client = kept.get("server");
  if (!client) return connect();
  if (process.argv[2] !== "listing") return client;
  try {
    await client.listTools();
    return client;
  } catch {
    kept.delete("server");
    return connect();
  }
}

for (let use = 0; use < 10; use++) {
  const client = await clientOf();
  await client.callTool({ name: "echo", arguments: { text: `use ${use}` } });
}
await kept.get("server").close();
