// A server on the official TypeScript SDK 2.x and express; see ../../../README.md for the contract.
//
// Clients of 2026-07-28 get `createMcpHandler`, the only one that knows it. Earlier ones get the transport: the handler
// would answer them in streams, whatever the mode.

import { createMcpExpressApp } from '@modelcontextprotocol/express';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { z } from 'zod';

import { mount } from './endpoint.mjs';
import { installed, parse, serve } from './program.mjs';
import { registerAll } from './tools.mjs';

const version = installed('@modelcontextprotocol/server');

const tools = [];
registerAll((name, description, shape, handler) => {
  tools.push([name, { description, inputSchema: z.object(shape) }, handler]);
});

function newServer() {
  const server = new McpServer({ name: 'typescript-sdk', version });
  for (const tool of tools) server.registerTool(...tool);
  return server;
}

const given = parse(process.argv.slice(2));
const app = createMcpExpressApp({ host: given.host });
const modern = toNodeHandler(createMcpHandler(newServer, { legacy: 'reject', responseMode: given.mode }));
mount(app, given, NodeStreamableHTTPServerTransport, newServer, modern);
serve(app, given, version);
