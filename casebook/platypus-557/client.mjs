// Runs six turns, each with one tool call, by the AI SDK's client: one for each turn, or one that is kept.
import { createMCPClient } from "@ai-sdk/mcp";

const perTurn = process.argv[2] === "client-per-turn";

async function openSession() {
  const client = await createMCPClient({ transport: { type: "http", url: process.env.MCP_URL } });
  return { client, tools: await client.tools() };
}

const kept = perTurn ? undefined : await openSession();
for (let turn = 0; turn < 6; turn++) {
  const { client, tools } = kept ?? (await openSession());
  await tools.echo.execute({ text: `turn ${turn}` }, { messages: [], toolCallId: String(turn) });
  if (perTurn) await client.close();
}
await kept?.client.close();
