// The official TypeScript SDK 2.x against a server; see ../README.md.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [era, way, ...target] = process.argv.slice(2);

const transport =
  way === 'http'
    ? new StreamableHTTPClientTransport(new URL(target[0]))
    : new StdioClientTransport({ command: target[0], args: target.slice(1) });
const client = new Client(
  { name: 'interop-typescript-2', version: '1.0.0' },
  { versionNegotiation: { mode: era === 'legacy' ? 'legacy' : 'auto' } }
);
await client.connect(transport);

const progress = [];
const { tools } = await client.listTools();
const echo = await client.callTool({ name: 'echo', arguments: { text: 'hello ✓' } });
await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, {
  onprogress: (told) => progress.push(told.progress)
});
const resource = await client.readResource({ uri: 'test://static-text' });
const prompt = await client.getPrompt({
  name: 'test_prompt_with_arguments',
  arguments: { arg1: 'one', arg2: 'two' }
});
const missing = await client.callTool({ name: 'no_such_tool', arguments: {} }).then(
  (result) => result.isError === true,
  () => true
);
const told = {
  protocol: client.getNegotiatedProtocolVersion(),
  server: client.getServerVersion().name,
  tools: tools.map((tool) => tool.name).sort(),
  echo: echo.content[0].text,
  progress,
  resource: resource.contents[0].text,
  prompt: prompt.messages[0].content.text,
  missing
};
if (way === 'http' && transport.sessionId) await transport.terminateSession();
await client.close();
console.log(JSON.stringify(told));
