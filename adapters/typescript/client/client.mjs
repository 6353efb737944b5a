// The client program for the official TypeScript SDK: the process contract of ../../README.md.
//
// This file contains only the contract. `driver.mjs` drives the SDK, `authorization.mjs` consents in OAuth flows, and
// `sdk.mjs` contains the differences between the generations of the SDK.

import { createInterface } from 'node:readline';

import { failure, message } from './outcome.mjs';

const UNSUPPORTED_EXIT = 127;
const DEFAULT_LIMIT_S = 60;

/** Reserves stdout for answers; output of libraries goes to stderr instead. */
function claimStdout() {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  return (value) => write(`${JSON.stringify(value)}\n`);
}

async function loadDriver() {
  try {
    const { Driver } = await import('./driver.mjs');
    return new Driver();
  } catch (error) {
    if (!['ERR_MODULE_NOT_FOUND', 'ERR_PACKAGE_PATH_NOT_EXPORTED'].includes(error.code)) throw error;
    console.error(`this release has no streamable HTTP client: ${message(error)}`);
    return process.exit(UNSUPPORTED_EXIT);
  }
}

/** Runs one command. Every failure becomes an answer, so the next command can still run. */
async function answer(driver, line) {
  let command;
  try {
    command = JSON.parse(line);
  } catch (error) {
    return failure(null, 'protocol', `this line is no JSON: ${message(error)}`);
  }
  const name = String(command?.cmd);
  if (!Object.hasOwn(driver.operations, name)) return failure(name, 'protocol', `unknown command ${name}`);
  const outcome = await driver.operations[name](command, 1_000 * (command.timeout_s || DEFAULT_LIMIT_S));
  return { op: name, ok: outcome.error === undefined, ...outcome };
}

const say = claimStdout();
const driver = await loadDriver();

async function leave() {
  await driver.abandon();
  process.exit(0);
}

process.once('SIGTERM', leave);
say({ ready: true, sdk: 'typescript', version: driver.version, pid: process.pid });
for await (const line of createInterface({ input: process.stdin })) {
  if (!line.trim()) continue;
  if (/^\{\s*"cmd"\s*:\s*"close"/.test(line)) break;
  say(await answer(driver, line));
}
await leave();
