// Results of operations: time stamps of `hrtime`, which reads CLOCK_MONOTONIC on Linux, and a result or an error.

const MESSAGE_LIMIT = 2_000;

/** The time in nanoseconds, which is rounded after 104 days of uptime. */
export const now = () => Number(process.hrtime.bigint());

/** This release has no API for the request. */
export class Unsupported extends Error {}

/** The authorization server refused consent, or didn't answer. */
export class ConsentRefused extends Error {}

/** The operation reached its time limit. */
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

/** The first line of the message, and its cause, because `fetch failed` alone is uninformative. */
export function message(error) {
  const said = String(error?.message || error).split('\n', 1)[0];
  const cause = error?.cause?.code ?? error?.cause?.message;
  const name = error?.name && error.name !== 'Error' ? `${error.name}: ` : '';
  return `${name}${said}${cause === undefined ? '' : ` (${cause})`}`.slice(0, MESSAGE_LIMIT);
}

/** Classifies an error by names and codes, because its classes differ between releases. */
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

/** The value of a promise, or `TimedOut`. The promise itself continues, and the caller closes what it opens. */
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
