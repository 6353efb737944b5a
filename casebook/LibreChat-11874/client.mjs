// Keeps a session for 20 s with a fetch whose undici Agent has a body timeout.
import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Agent, fetch } from "undici";

const dispatcher = new Agent({ bodyTimeout: Number(process.argv[2]), headersTimeout: Number(process.argv[2]) });
const client = new Client({ name: "@librechat/api-client", version: "1.2.3" });
client.onerror = () => {};
await client.connect(
  new StreamableHTTPClientTransport(new URL(process.env.MCP_URL), { fetch: (url, init) => fetch(url, { ...init, dispatcher }) }),
);
await client.callTool({ name: "echo", arguments: { text: "a" } });
await sleep(20_000);
await client.callTool({ name: "echo", arguments: { text: "b" } });
await client.close();
process.exit(0);
