// The endpoint on express, as the SDK's own examples have it. Without sessions there are a server and a transport for
// each request, with sessions for each session.

import { randomUUID } from 'node:crypto';

/** The first revision without sessions, which has a separate handler where the SDK supports it. */
const MODERN = '2026-07-28';

/** The endpoint. `newServer` creates a server with all tools; `modern` serves 2026-07-28, where the SDK supports it. */
export function mount(app, { mode, state }, Transport, newServer, modern) {
  const serving = state === 'stateful' ? withSessions : once;
  const legacy = serving(Transport, newServer, { enableJsonResponse: mode === 'json' });
  app.all('/mcp', async (request, response) => {
    if (modern !== undefined && request.headers['mcp-protocol-version'] === MODERN) {
      await modern(request, response, request.body);
    } else {
      await legacy(request, response);
    }
  });
}

function once(Transport, newServer, options) {
  return async (request, response) => {
    if (request.method !== 'POST') {
      refuse(response, 405, 'Method not allowed.');
      return;
    }
    const server = newServer();
    const transport = new Transport({ ...options, sessionIdGenerator: undefined });
    response.on('close', () => {
      transport.close();
      server.close();
    });
    await server.connect(transport);
    await transport.handleRequest(request, response, request.body);
  };
}

function withSessions(Transport, newServer, options) {
  const sessions = new Map();
  return async (request, response) => {
    const id = request.headers['mcp-session-id'];
    let transport = sessions.get(id);
    if (transport === undefined && id !== undefined) {
      refuse(response, 404, 'Session not found');
      return;
    }
    if (transport === undefined) {
      transport = new Transport({
        ...options,
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (begun) => sessions.set(begun, transport)
      });
      transport.onclose = () => sessions.delete(transport.sessionId);
      await newServer().connect(transport);
    }
    await transport.handleRequest(request, response, request.body);
  };
}

function refuse(response, status, message) {
  response.status(status).json({ jsonrpc: '2.0', error: { code: -32_000, message }, id: null });
}
