// A server on the official TypeScript SDK 1.x and express; see ../../../README.md for the contract.

import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

import { mount } from './endpoint.mjs';
import { installed, parse, serve } from './program.mjs';
import { registerAll } from './tools.mjs';

const version = installed('@modelcontextprotocol/sdk');

function newServer() {
  const server = new McpServer({ name: 'typescript-sdk', version });
  registerAll((name, description, inputSchema, handler) => {
    server.registerTool(name, { description, inputSchema }, handler);
  });
  return server;
}

const given = parse(process.argv.slice(2));
const app = createMcpExpressApp({ host: given.host });
mount(app, given, StreamableHTTPServerTransport, newServer);
serve(app, given, version);
