'use strict';
// The file into which one process writes its evidence, as lines of JSON. Only the user may read it.

const fs = require('node:fs');
const path = require('node:path');

/** Bytes that one process writes at most. */
const MOST_BYTES = 96 * 1024 * 1024;

/** The last line of a file that has as many. */
const FULL = '{"missing":{"source":"stacks","reason":"the run was too long: the later samples and spans are left out"}}\n';

/** Time between two writes. A process that is killed loses the evidence since the last one. */
const WRITE_PERIOD_MS = 250;

class EvidenceFile {
  #descriptor;
  #bytes = 0;
  #isFull = false;
  #collectors = [];

  constructor(folder) {
    const flags = fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_EXCL | fs.constants.O_APPEND;
    this.#descriptor = fs.openSync(path.join(folder, `node-${process.pid}.jsonl`), flags, 0o600);
    setInterval(() => this.#collect(false), WRITE_PERIOD_MS).unref();
    process.on('exit', () => this.#collect(true));
  }

  /** Has `collector(isLast)` called before each write. It returns lines. */
  add(collector) {
    this.#collectors.push(collector);
  }

  write(line) {
    const text = `${JSON.stringify(line)}\n`;
    if (this.#isFull) return;
    this.#bytes += Buffer.byteLength(text);
    this.#isFull = this.#bytes > MOST_BYTES;
    fs.writeSync(this.#descriptor, this.#isFull ? FULL : text);
  }

  #collect(isLast) {
    for (const collector of this.#collectors) {
      try {
        for (const line of collector(isLast)) this.write(line);
      } catch {
        // The disk is full, or the collector fails: the server's work comes first.
      }
    }
  }
}

module.exports = { EvidenceFile };
