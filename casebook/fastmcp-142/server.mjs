// Serves the tool `add` by FastMCP for TypeScript over Streamable HTTP, stateless or with sessions.
import { FastMCP } from "fastmcp";
import { z } from "zod";

const server = new FastMCP({ name: "My Server", version: "1.0.0" });
server.addTool({
  name: "add",
  description: "Adds two numbers.",
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => String(a + b),
});
await server.start({
  transportType: "httpStream",
  httpStream: { host: "127.0.0.1", port: Number(process.env.PORT), endpoint: "/mcp", stateless: process.argv[2] === "stateless" },
});
