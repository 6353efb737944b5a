// The official SDK, of the version that the environment names.
import { z } from 'zod';

const VERSIONS = {
  async 1() {
    const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js');
    const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
    return { McpServer, StdioServerTransport };
  },
  async 2() {
    const { McpServer } = await import('@modelcontextprotocol/server');
    const { StdioServerTransport } = await import('@modelcontextprotocol/server/stdio');
    return { McpServer, StdioServerTransport };
  },
};

/** Serves one tool over stdio. */
export async function openServer(name, handler) {
  const { McpServer, StdioServerTransport } = await VERSIONS[process.env.SDK ?? 1]();
  const server = new McpServer({ name: 'weather', version: '1.0.0' });
  const inputSchema = process.env.SDK === '2' ? z.object({}) : {};
  server.registerTool(name, { description: 'The weather.', inputSchema }, async () => ({
    content: [{ type: 'text', text: await handler() }],
  }));
  await server.connect(new StdioServerTransport());
}
