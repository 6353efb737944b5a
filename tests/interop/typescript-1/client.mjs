// The official TypeScript SDK 1.x against a server; see ../README.md.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [era, way, ...target] = process.argv.slice(2);
if (era !== 'legacy') throw new Error('the SDK 1.x knows no other era');

let protocol;
const transport =
  way === 'http'
    ? new StreamableHTTPClientTransport(new URL(target[0]))
    : new StdioClientTransport({ command: target[0], args: target.slice(1) });
// The client tells the transport what was agreed on, and offers no other way to know; stdio's has no such method.
const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
  protocol = version;
  setProtocolVersion?.(version);
};

const client = new Client({ name: 'interop-typescript-1', version: '1.0.0' });
await client.connect(transport);

const progress = [];
const { tools } = await client.listTools();
const echo = await client.callTool({ name: 'echo', arguments: { text: 'hello ✓' } });
await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, undefined, {
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
  protocol,
  server: client.getServerVersion().name,
  tools: tools.map((tool) => tool.name).sort(),
  echo: echo.content[0].text,
  progress,
  resource: resource.contents[0].text,
  prompt: prompt.messages[0].content.text,
  missing
};
if (way === 'http') await transport.terminateSession();
await client.close();
console.log(JSON.stringify(told));
