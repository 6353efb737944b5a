// An MCP server over HTTP without packages, whose one tool computes. It prints its port, or with the argument "cluster"
// those of its two workers.
import cluster from 'node:cluster';
import { createServer } from 'node:http';

const TOOL = { name: 'burn', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } };

function burn(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end) Math.sqrt(2);
}

function answer({ method, params }) {
  if (method === 'initialize') {
    const capabilities = { tools: {} };
    return { protocolVersion: params.protocolVersion, capabilities, serverInfo: { name: 'plain', version: '1' } };
  }
  if (method === 'tools/list') return { tools: [TOOL] };
  burn(20);
  return { content: [{ type: 'text', text: String(process.pid) }] };
}

async function serve(request, reply) {
  let text = '';
  for await (const part of request) text += part;
  const message = text && JSON.parse(text);
  if (!message || message.id === undefined) {
    reply.writeHead(message ? 202 : 405).end();
    return;
  }
  reply.writeHead(200, { 'content-type': 'application/json' });
  reply.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: answer(message) }));
}

if (cluster.isPrimary && process.argv[2] === 'cluster') {
  cluster.fork();
  cluster.fork();
} else {
  const server = createServer(serve).listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
    process.stdout.write(`${server.address().port}\n`);
  });
}
