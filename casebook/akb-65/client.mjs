// Passes twelve tool calls on with node:http, through an agent with keepAlive=true or keepAlive=false.
import { Agent, request } from "node:http";

const agent = new Agent({ keepAlive: process.argv[2] === "keepAlive=true" });
let session;

function send(message) {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  if (session) headers["mcp-session-id"] = session;
  return new Promise((resolve, reject) => {
    const sent = request(process.env.MCP_URL, { method: "POST", agent, headers }, (response) => {
      session ??= response.headers["mcp-session-id"];
      response.resume().on("end", resolve);
    });
    sent.on("error", reject).end(body);
  });
}

const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "akb-mcp", version: "1.0.0" } };
await send({ id: 0, method: "initialize", params });
await send({ method: "notifications/initialized" });
for (let id = 1; id <= 12; id++) {
  await send({ id, method: "tools/call", params: { name: "forecast", arguments: { city: `city ${id}` } } });
}
agent.destroy();
