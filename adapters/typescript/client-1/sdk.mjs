// The parts of the official TypeScript SDK 1.x that the driver uses.

import { readFileSync } from 'node:fs';

import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport, getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { Unsupported } from './outcome.mjs';

export { StdioClientTransport, StreamableHTTPClientTransport, UnauthorizedError, getDefaultEnvironment };

export const { version } = JSON.parse(
  readFileSync(new URL('node_modules/@modelcontextprotocol/sdk/package.json', import.meta.url), 'utf8')
);

export function newClient(mode = 'legacy') {
  if (mode !== 'legacy') throw new Unsupported(`mode ${mode} needs 2.x: this release only knows the initialize handshake`);
  return new Client({ name: 'mcpace', version }, { capabilities: {} });
}

/** Calls a tool. The schema of the result is the second argument; `undefined` selects the SDK's own. */
export const callTool = (client, params, options) => client.callTool(params, undefined, options);

export const finishAuth = (transport, answer) => transport.finishAuth(answer.get('code'));

/** Private before 1.13. */
export const protocolVersion = (_, transport) => transport.protocolVersion;
