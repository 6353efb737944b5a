// Sends tools/list requests=N times, in one session where the server gives one, two requests at a time.
const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };

async function send(message) {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  const response = await fetch(process.env.MCP_URL, { method: "POST", headers, body });
  await response.text();
  return response.headers.get("mcp-session-id");
}

const params = { protocolVersion: "2025-03-26", capabilities: {}, clientInfo: { name: "curl", version: "8.0" } };
const session = await send({ id: 0, method: "initialize", params });
if (session) headers["mcp-session-id"] = session;
await send({ method: "notifications/initialized" });
const requests = Number(process.argv[2].split("=")[1]);
for (let id = 1; id <= requests; id += 2) {
  await Promise.all([send({ id, method: "tools/list" }), send({ id: id + 1, method: "tools/list" })]);
}
