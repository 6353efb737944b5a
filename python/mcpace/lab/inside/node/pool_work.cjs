'use strict';
// Work that Node.js does on threads of its own: files, and the addresses of host names. While the main thread awaits such
// work, it is idle and has no stack.
//
// A timer looks at the requests that are in flight. A request that is seen counts for the time since the last look.

// The watched function of timers.cjs would look at each of these timers.
const { setTimeout } = require('node:timers');

const LOOK_PERIOD_MS = 4;

/** The period is at least this many times as long as one look takes. */
const LEAST_RATIO = 100;

/** Stretches of time that are kept between two writes. */
const MOST_STRETCHES = 10_000;

/** Names of the work, by the type of the request (process.getActiveResourcesInfo). */
const WORK = {
  FSReqCallback: 'files',
  FSReqPromise: 'files',
  GetAddrInfoReqWrap: 'addresses of hosts',
  GetNameInfoReqWrap: 'addresses of hosts',
};

const nowUs = () => Number(process.hrtime.bigint() / 1000n);

/** Without a look at the program's requests before Node.js 17.3, there is no such evidence. */
function start(file) {
  if (typeof process.getActiveResourcesInfo !== 'function') return;
  const stretches = [];
  /** The newest stretch of each work. */
  const newest = new Map();
  let last = nowUs();
  const look = () => {
    const now = nowUs();
    for (const work of new Set(process.getActiveResourcesInfo().map((type) => WORK[type]))) {
      if (!work) continue;
      const previous = newest.get(work);
      if (previous && previous[1] === last) {
        previous[1] = now;
      } else if (stretches.length < MOST_STRETCHES) {
        newest.set(work, [last, now, work]);
        stretches.push(newest.get(work));
      }
    }
    last = now;
    const tookMs = (nowUs() - now) / 1000;
    setTimeout(look, Math.max(LOOK_PERIOD_MS, tookMs * LEAST_RATIO)).unref();
  };
  look();
  file.add(() => {
    newest.clear();
    return stretches.length > 0 ? [{ poolWork: stretches.splice(0) }] : [];
  });
}

module.exports = { start };
