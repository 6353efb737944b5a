// What an operation came to: stamps of CLOCK_MONOTONIC, which is what `hrtime` reads, and a result or an error.

const MESSAGE_LIMIT = 2_000;

/** Nanoseconds; beyond 104 days of uptime the last few are rounded. */
export const now = () => Number(process.hrtime.bigint());

/** This release has no API for what was asked. */
export class Unsupported extends Error {}

/** The authorization server said no, or nothing. */
export class ConsentRefused extends Error {}

/** Ran into the operation's own limit. */
export class TimedOut extends Error {}

export function failure(name, kind, text) {
  const error = { kind, message: text.slice(0, MESSAGE_LIMIT) };
  return { op: name, ok: false, start_ns: null, end_ns: null, error };
}

/** An operation that was refused before it began. */
export function refused(kind, text) {
  return { start_ns: null, end_ns: null, error: { kind, message: text } };
}

export function failed(startNs, endNs, error) {
  return { start_ns: startNs, end_ns: endNs, error: { kind: kindOf(error), message: message(error) } };
}

/** The first line, with what it was caused by: `fetch failed` alone says nothing. */
export function message(error) {
  const said = String(error?.message || error).split('\n', 1)[0];
  const cause = error?.cause?.code ?? error?.cause?.message;
  const name = error?.name && error.name !== 'Error' ? `${error.name}: ` : '';
  return `${name}${said}${cause === undefined ? '' : ` (${cause})`}`.slice(0, MESSAGE_LIMIT);
}

/** By names and codes, not by classes: these differ from release to release. */
function kindOf(error) {
  if (error instanceof Unsupported) return 'unsupported';
  if (error instanceof ConsentRefused) return 'auth';
  if (error instanceof TimedOut || error?.code === REQUEST_TIMEOUT || error?.code === 'REQUEST_TIMEOUT') {
    return 'timeout';
  }
  const words = `${error?.name} ${error?.constructor?.name} ${error?.message}`;
  if (/Unauthorized|OAuth|HTTP 40[13]\b/.test(words)) return 'auth';
  if (/fetch failed|ECONNREFUSED|ECONNRESET|EPIPE|ENOENT|Connection closed|socket/i.test(words)) return 'connection';
  if (/McpError|ProtocolError|SdkError|SdkHttpError|StreamableHTTPError|ZodError|HTTP \d/.test(words)) return 'protocol';
  return 'other';
}

const REQUEST_TIMEOUT = -32_001;

/** What a promise comes to, or `TimedOut`. The promise goes on: what it holds is closed by whoever asked. */
export async function within(limitMs, promise, what) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new TimedOut(`${what} after ${limitMs / 1_000} s`)), limitMs);
  });
  promise.catch(() => {});
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
  }
}
