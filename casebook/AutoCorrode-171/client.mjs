// Sends a call each 100 ms, sixty in all, without waiting for the responses before.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

const [command, ...args] = JSON.parse(process.env.MCP_COMMAND);
const { PYTHONUNBUFFERED: _, ...env } = process.env;
const server = spawn(command, args, { env, stdio: ["pipe", "pipe", "inherit"] });
server.stdout.resume();
const send = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "casebook", version: "1.0.0" } };
send({ id: 0, method: "initialize", params });
send({ method: "notifications/initialized" });
for (let id = 1; id <= 60; id++) {
  send({ id, method: "tools/call", params: { name: "repl", arguments: { command: `step ${id}` } } });
  await sleep(100);
}
server.stdin.end();
await once(server, "exit");
