// Calls a tool with a time-out of 2 s and, like an agent, calls it again after a failure, three times at most.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "agent", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.env.MCP_URL)));

async function createJob(name) {
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      return await client.callTool({ name: "create_job", arguments: { name } }, undefined, { timeout: 2000 });
    } catch {
      // The agent takes the time-out as a failure.
    }
  }
}

await createJob("nightly");
await createJob("weekly");
await client.close();
process.exit(0);
