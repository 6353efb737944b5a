// A server of the official TypeScript SDK 1.x; see ../README.md.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

function server() {
  const made = new McpServer({ name: 'typescript-1', version: '1' });
  made.registerTool('echo', { description: 'Says what you say', inputSchema: { text: z.string() } }, ({ text }) => ({
    content: [{ type: 'text', text }]
  }));
  made.registerTool('steps', { description: 'Tells its progress', inputSchema: {} }, async (_, extra) => {
    const progressToken = extra._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 1, 2]) {
      await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 2 } });
    }
    return { content: [{ type: 'text', text: 'done' }] };
  });
  made.registerResource('text', 'test://static-text', {}, (uri) => ({ contents: [{ uri: uri.href, text: 'a text' }] }));
  made.registerPrompt('greeting', { argsSchema: { name: z.string() } }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Hello, ${name}` } }]
  }));
  return made;
}

if (process.argv[2] === 'stdio') {
  await server().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  const http = createServer(async (request, response) => {
    let transport = sessions.get(request.headers['mcp-session-id']);
    if (transport === undefined) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport)
      });
      await server().connect(transport);
    }
    await transport.handleRequest(request, response);
  });
  http.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`));
}
