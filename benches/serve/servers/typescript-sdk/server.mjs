// The echo tool on the official TypeScript SDK and express, stateless: a server and a transport for every request,
// as the SDK's own stateless example does. Usage: server.mjs PORT json|sse.

import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { z } from 'zod'

const [port, mode] = process.argv.slice(2)
const description = 'Says the text again'
const inputSchema = { text: z.string() }

const app = createMcpExpressApp()
app.post('/mcp', async (request, response) => {
  const server = newServer()
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: undefined,
    enableJsonResponse: mode === 'json',
  })
  response.on('close', () => {
    transport.close()
    server.close()
  })
  await server.connect(transport)
  await transport.handleRequest(request, response, request.body)
})
app.listen(Number(port), '127.0.0.1')

function newServer() {
  const server = new McpServer({ name: 'echo', version: '1.0' })
  server.registerTool('echo', { description, inputSchema }, async ({ text }) => ({ content: [{ type: 'text', text }] }))
  return server
}
