// Serves the tool `echo` by mcp-handler, as a route of a Node.js site.
import { createServer } from "node:http";
import { Readable } from "node:stream";

import { createMcpHandler } from "mcp-handler";
import { z } from "zod";

const handler = createMcpHandler(
  (server) => {
    const echo = async ({ text }) => ({ content: [{ type: "text", text }] });
    for (let number = 0; number < 10; number++) server.tool(`echo_${number}`, "Returns the text.", { text: z.string() }, echo);
  },
  {},
  { basePath: "", disableSse: true },
);

createServer(async (request, response) => {
  const body = request.method === "POST" ? Readable.toWeb(request) : undefined;
  const url = `http://127.0.0.1${request.url}`;
  const reply = await handler(new Request(url, { method: request.method, headers: request.headers, body, duplex: "half" }));
  response.writeHead(reply.status, Object.fromEntries(reply.headers));
  if (reply.body) Readable.fromWeb(reply.body).pipe(response);
  else response.end();
}).listen(Number(process.env.PORT), "127.0.0.1");
