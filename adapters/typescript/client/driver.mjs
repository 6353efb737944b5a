// Drives the SDK: one provider, one connection, four timed operations.
//
// Only the SDK's ordinary public API is used, as in its own examples. `hrtime` is read immediately before and after its
// calls; all other work (providers, summaries) is outside.

import { Wallet } from './authorization.mjs';
import { Unsupported, failed, message, now, refused, within } from './outcome.mjs';
import * as sdk from './sdk.mjs';

const NAMES_LIMIT = 200;
const TEXT_LIMIT = 200;
/** Time limit for closing a connection without a command that has a limit of its own. */
const ABANDON_LIMIT_MS = 2_000;
const NOT_CONNECTED = () => refused('protocol', 'not connected: connect first');

export class Driver {
  version = sdk.version;
  #wallet = new Wallet();
  #connection = null;
  /** The SDK's last report of an error outside a call, which often contains the reason for a timeout. */
  #said = '';

  operations = {
    provider: (command) => this.#provider(command),
    connect: (command, limitMs) => this.#connect(command, limitMs),
    list_tools: (_, limitMs) => this.#call(limitMs, (client, options) => client.listTools(undefined, options), tools),
    call_tool: ({ name, arguments: given, own_limits: ownLimits, progress }, limitMs) => {
      const params = { name, arguments: given ?? {} };
      let heard = 0;
      const asked = progress ? { onprogress: () => (heard += 1) } : {};
      const options = (limits) => ({ ...(ownLimits ? {} : limits), ...asked });
      const summary = (reply) => (progress ? { ...called(reply), progress: heard } : called(reply));
      return this.#call(limitMs, (client, limits) => sdk.callTool(client, params, options(limits)), summary);
    },
    disconnect: (_, limitMs) => this.#disconnect(limitMs)
  };

  /** Closes the connection, if one is open, at the end of the program. */
  async abandon() {
    if (this.#connection !== null) await this.#disconnect(ABANDON_LIMIT_MS);
  }

  #provider({ url, auth }) {
    let prepared;
    try {
      prepared = this.#wallet.prepare(url, auth ?? {});
    } catch (error) {
      return failed(null, null, error);
    }
    const startNs = now();
    const provider = prepared.construct();
    const endNs = now();
    this.#wallet.keep(url, provider);
    return { start_ns: startNs, end_ns: endNs, result: {} };
  }

  async #connect(command, limitMs) {
    if (this.#connection !== null) return refused('protocol', 'already connected: disconnect first');
    let open;
    try {
      open = this.#opener(command);
    } catch (error) {
      return failed(null, null, error);
    }
    this.#said = '';
    const connection = { client: null, transport: null };
    const startNs = now();
    try {
      const options = command.own_limits ? {} : { timeout: limitMs };
      await within(limitMs, open(connection, options), 'not connected');
    } catch (error) {
      const endNs = now();
      await close(connection).catch(() => {});
      return this.#failed(startNs, endNs, error);
    }
    const endNs = now();
    this.#connection = connection;
    return { start_ns: startNs, end_ns: endNs, result: server(connection) };
  }

  /** Creates everything that can be created before the clock starts. */
  #opener({ url, command, env, auth, mode }) {
    const make = this.#transportMaker({ url, command, env }, auth ?? { kind: 'none' });
    const attempt = async (connection, options) => {
      connection.client = sdk.newClient(mode ?? undefined);
      connection.client.onerror = (error) => {
        this.#said = message(error);
      };
      connection.transport = make.transport();
      await connection.client.connect(connection.transport, options);
    };
    return async (connection, options) => {
      try {
        await attempt(connection, options);
      } catch (error) {
        if (!(error instanceof sdk.UnauthorizedError) || !make.provider?.consented) throw error;
        // As in the SDK's own example client: the old transport gets the code, and then a new one connects.
        await sdk.finishAuth(connection.transport, make.provider.takeAnswer());
        await attempt(connection, options);
      }
    };
  }

  #transportMaker({ url, command, env }, auth) {
    if (command) {
      const [program, ...args] = command;
      const environment = { ...sdk.getDefaultEnvironment(), ...env };
      return { transport: () => new sdk.StdioClientTransport({ command: program, args, env: environment }) };
    }
    switch (auth.kind) {
      case 'none':
        return { transport: () => new sdk.StreamableHTTPClientTransport(new URL(url)) };
      case 'bearer': {
        const requestInit = { headers: { Authorization: `Bearer ${auth.token}` } };
        return { transport: () => new sdk.StreamableHTTPClientTransport(new URL(url), { requestInit }) };
      }
      case 'oauth': {
        const provider = this.#wallet.provider(url, auth);
        const options = { authProvider: provider };
        return { provider, transport: () => new sdk.StreamableHTTPClientTransport(new URL(url), options) };
      }
      default:
        throw new Unsupported(`unknown kind of authorization: ${auth.kind}`);
    }
  }

  async #call(limitMs, call, summary) {
    if (this.#connection === null) return NOT_CONNECTED();
    this.#said = '';
    const { client } = this.#connection;
    const startNs = now();
    let reply;
    try {
      reply = await within(limitMs, call(client, { timeout: limitMs }), 'no answer');
    } catch (error) {
      return this.#failed(startNs, now(), error);
    }
    const endNs = now();
    return { start_ns: startNs, end_ns: endNs, result: summary(reply) };
  }

  async #disconnect(limitMs) {
    const connection = this.#connection;
    if (connection === null) return NOT_CONNECTED();
    this.#connection = null;
    const startNs = now();
    try {
      await within(limitMs, close(connection), 'not disconnected');
    } catch (error) {
      return this.#failed(startNs, now(), error);
    }
    return { start_ns: startNs, end_ns: now(), result: {} };
  }

  #failed(startNs, endNs, error) {
    const outcome = failed(startNs, endNs, error);
    if (outcome.error.kind === 'timeout' && this.#said) outcome.error.message += `; the SDK said: ${this.#said}`;
    return outcome;
  }
}

/** Ends the session where the release supports that, and then closes the transport. */
async function close({ client, transport }) {
  if (client === null) return;
  if (transport?.sessionId && typeof transport.terminateSession === 'function') await transport.terminateSession();
  await client.close();
}

function server({ client, transport }) {
  const info = client.getServerVersion();
  return {
    protocol_version: sdk.protocolVersion(client, transport) ?? null,
    server_name: info?.name ?? null,
    server_version: info?.version ?? null
  };
}

function tools(reply) {
  const names = reply.tools.slice(0, NAMES_LIMIT).map((tool) => tool.name);
  return { tools: reply.tools.length, names, more: Boolean(reply.nextCursor) };
}

function called(reply) {
  const texts = (reply.content ?? []).filter((block) => block.type === 'text').map((block) => block.text);
  return { is_error: Boolean(reply.isError), text: texts.join('\n').slice(0, TEXT_LIMIT) };
}
