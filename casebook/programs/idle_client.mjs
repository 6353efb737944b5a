// Calls the tool `echo`, stays connected for seconds=N, and calls it again.
import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "casebook", version: "1.0.0" });
client.onerror = () => {};
await client.connect(new StreamableHTTPClientTransport(new URL(process.env.MCP_URL)));
await client.callTool({ name: "echo", arguments: { text: "a" } });
await sleep(1000 * Number(process.argv[2].split("=")[1]));
await client.callTool({ name: "echo", arguments: { text: "b" } });
await client.close();
