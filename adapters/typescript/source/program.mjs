// The program's side of the process contract: its options, its output, its end. Knows nothing of MCP.

import { readFileSync } from 'node:fs';

const UNSUPPORTED = 127;

/** The options of the command line. */
export function parse(words) {
  const given = { host: '127.0.0.1', port: 0, mode: 'json', state: 'stateless' };
  for (let at = 0; at < words.length; at += 2) {
    const [option, value] = words.slice(at, at + 2);
    const name = option.replace(/^--/, '');
    if (!option.startsWith('--') || !Object.hasOwn(given, name)) fail(`${option} is no option of this program`);
    if (value === undefined) fail(`${option} needs a value`);
    given[name] = value;
  }
  given.port = Number(given.port);
  if (!Number.isInteger(given.port) || given.port < 0 || given.port > 65_535) fail('--port must be from 0 to 65535');
  if (!['stateless', 'stateful'].includes(given.state)) {
    fail(`--state is stateless or stateful, not ${given.state}`);
  }
  if (!['json', 'sse'].includes(given.mode)) fail(`the TypeScript SDK has no mode ${given.mode}`, UNSUPPORTED);
  return given;
}

/** Prints one line on stderr and ends the program. */
export function fail(why, code = 1) {
  console.error(why);
  process.exit(code);
}

/** Listens, prints the address on stdout, and ends at the end of stdin or at SIGTERM. */
export function serve(app, { host, port }, version) {
  const listening = app.listen(port, host, (error) => {
    if (error) fail(`can't listen on ${host}:${port}: ${error.message}`);
    const url = `http://${host.includes(':') ? `[${host}]` : host}:${listening.address().port}/mcp`;
    const ready = { ready: true, sdk: 'typescript', version, pid: process.pid, url, workers: 1, notes: [] };
    process.stdout.write(`${JSON.stringify(ready)}\n`);
  });
  const end = () => process.exit(0);
  process.once('SIGTERM', end);
  process.stdin.on('end', end).on('error', end).resume();
}

/** Version of an installed package. */
export function installed(name) {
  return JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), 'utf8')).version;
}
