// The parts of the official TypeScript SDK 2.x that the driver uses.

import { readFileSync } from 'node:fs';

import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';
import { StdioClientTransport, getDefaultEnvironment } from '@modelcontextprotocol/client/stdio';

export { StdioClientTransport, StreamableHTTPClientTransport, UnauthorizedError, getDefaultEnvironment };

export const { version } = JSON.parse(
  readFileSync(new URL('node_modules/@modelcontextprotocol/client/package.json', import.meta.url), 'utf8')
);

const MODES = { legacy: 'legacy', auto: 'auto', '2026-07-28': { pin: '2026-07-28' } };

/** Creates a client; without a mode it uses the SDK's default. */
export function newClient(mode) {
  const options = mode === undefined ? {} : { versionNegotiation: { mode: MODES[mode] ?? mode } };
  return new Client({ name: 'mcpace', version }, options);
}

export const callTool = (client, params, options) => client.callTool(params, options);

export const finishAuth = (transport, answer) => transport.finishAuth(answer);

export const protocolVersion = (client) => client.getNegotiatedProtocolVersion();
