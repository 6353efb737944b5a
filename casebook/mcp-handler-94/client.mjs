// Sends 12,000 tool calls, eight at a time, without a session.
const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };

async function call(id) {
  const params = { name: "echo_0", arguments: { text: `call ${id}` } };
  const body = JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params });
  const response = await fetch(process.env.MCP_URL, { method: "POST", headers, body });
  await response.text();
}

async function callFrom(first) {
  for (let id = first; id < 12000; id += 8) await call(id);
}

await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(callFrom));
