// Serves the tool `run_script`, which runs a child process of 0.6 s: by spawnSync, or by execFile.
import { execFile, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { promisify } from "node:util";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

const script = ["-e", "setTimeout(() => console.log('done'), 600)"];

async function runScript() {
  if (process.argv[2] === "spawnSync") return spawnSync(process.execPath, script, { encoding: "utf8" }).stdout;
  return (await promisify(execFile)(process.execPath, script)).stdout;
}

const server = new McpServer({ name: "codeatlas", version: "1.0.0" });
server.tool("run_script", "Runs a script.", async () => ({ content: [{ type: "text", text: await runScript() }] }));
const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
await server.connect(transport);
createServer((request, response) => transport.handleRequest(request, response)).listen(Number(process.env.PORT), "127.0.0.1");
