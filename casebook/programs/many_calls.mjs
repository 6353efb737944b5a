// Sends 12,000 tool calls, eight at a time, in a session where the server gives one.
const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };

async function send(message) {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  const response = await fetch(process.env.MCP_URL, { method: "POST", headers, body });
  await response.text();
  return response.headers.get("mcp-session-id");
}

async function callFrom(first) {
  for (let id = first; id <= 12000; id += 8) await send({ id, method: "tools/call", params: { name: "echo", arguments: { text: "a" } } });
}

const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "casebook", version: "1.0.0" } };
const session = await send({ id: 0, method: "initialize", params });
if (session) headers["mcp-session-id"] = session;
await send({ method: "notifications/initialized" });
await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(callFrom));
