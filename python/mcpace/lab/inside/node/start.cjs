'use strict';
// Instruments a program of Node.js as it starts. mcpace names this file in NODE_OPTIONS.
//
// A failure is written to the file of evidence, and the program starts as usual. Nothing is written to stdout or stderr.
// Programs that the server starts are not instrumented. A launcher (npx, npm, tsx) passes the instrumentation on.

const fs = require('node:fs');
const path = require('node:path');
const { isMainThread } = require('node:worker_threads');

/** Packages whose commands start the server in another process. */
const LAUNCHERS = new Set(['npm', 'npx', 'pnpm', 'yarn', 'corepack', 'tsx', 'nodemon', 'cross-env', 'dotenv-cli']);

/** Whether this process only starts the server. */
function isLauncher(script) {
  try {
    const parts = fs.realpathSync(script).split(path.sep);
    const folder = Math.max(parts.lastIndexOf('node_modules'), parts.lastIndexOf('nodejs'));
    return folder >= 0 && LAUNCHERS.has(parts[folder + 1]);
  } catch {
    return false;
  }
}

/** Takes the instrumentation's variables out of the environment. */
function takeSettings() {
  const { env } = process;
  const own = env.MCPACE_INSIDE_NODE_OPTIONS;
  const settings = { folder: env.MCPACE_INSIDE_NODE_FOLDER, packages: env.MCPACE_INSIDE_NODE_PACKAGES };
  for (const name of ['OPTIONS', 'FOLDER', 'PACKAGES']) delete env[`MCPACE_INSIDE_NODE_${name}`];
  if (own) env.NODE_OPTIONS = own;
  else delete env.NODE_OPTIONS;
  return settings;
}

function start() {
  const { folder, packages } = takeSettings();
  const { EvidenceFile } = require('./evidence_file.cjs');
  const file = new EvidenceFile(folder);
  file.write({ program: { pid: process.pid, node: process.version, script: realScript() } });
  const sources = {
    spans: () => packages && require('./spans.cjs').start(packages, file),
    stacks: () => {
      require('./samples.cjs').start(file);
      require('./pool_work.cjs').start(file);
      require('./timers.cjs').start(file);
    },
  };
  for (const [source, begin] of Object.entries(sources)) {
    try {
      begin();
    } catch (error) {
      file.write({ missing: { source, reason: String(error && error.message).slice(0, 500) } });
    }
  }
}

function realScript() {
  try {
    return fs.realpathSync(process.argv[1]);
  } catch {
    return '';
  }
}

if (isMainThread && process.env.MCPACE_INSIDE_NODE_FOLDER && !isLauncher(process.argv[1])) {
  try {
    start();
  } catch {
    // The folder of evidence is gone: the server runs on without it.
  }
}
