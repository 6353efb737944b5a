// A server of the official TypeScript SDK 2.x; see ../README.md.

import { createServer } from 'node:http';

import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

function server() {
  const made = new McpServer({ name: 'typescript-2', version: '1' });
  made.registerTool(
    'echo',
    { description: 'Says what you say', inputSchema: z.object({ text: z.string() }) },
    ({ text }) => ({ content: [{ type: 'text', text }] })
  );
  made.registerTool('steps', { description: 'Tells its progress', inputSchema: z.object({}) }, async (_, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 1, 2]) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 2 } });
    }
    return { content: [{ type: 'text', text: 'done' }] };
  });
  made.registerResource('text', 'test://static-text', {}, (uri) => ({ contents: [{ uri: uri.href, text: 'a text' }] }));
  made.registerPrompt('greeting', { argsSchema: z.object({ name: z.string() }) }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Hello, ${name}` } }]
  }));
  return made;
}

if (process.argv[2] === 'stdio') {
  serveStdio(server);
} else {
  const http = createServer(toNodeHandler(createMcpHandler(server)));
  http.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`));
}
