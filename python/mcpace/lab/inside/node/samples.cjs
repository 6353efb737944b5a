'use strict';
// Samples of the stack of the main thread, by V8's profiler, and pauses for the collection of garbage.
//
// One profile follows the other without a gap: the next one begins before the last one ends. The profiler would else
// be built anew each time, which takes milliseconds.

const inspector = require('node:inspector');
const { performance, PerformanceObserver } = require('node:perf_hooks');

const SAMPLE_PERIOD_US = 1000;

/** Pauses that are kept between two writes. */
const MOST_PAUSES = 10_000;

function start(file) {
  const session = new inspector.Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: SAMPLE_PERIOD_US });
  const finished = [];
  session.on('Profiler.consoleProfileFinished', ({ params }) => finished.push(params.profile));
  let number = 0;
  const title = () => `mcpace-${number}`;
  inspector.console.profile(title());
  file.add((isLast) => {
    const last = title();
    number += 1;
    if (!isLast) inspector.console.profile(title());
    inspector.console.profileEnd(last);
    return finished.splice(0).map((profile) => ({ profile }));
  });
  const pauses = observePauses();
  file.add(() => (pauses.length > 0 ? [{ pauses: pauses.splice(0) }] : []));
}

/** Pauses as they come: microseconds of the monotonic clock at which each began and ended. */
function observePauses() {
  const offsetMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();
  const pauses = [];
  const observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) {
      const began = Math.round((startTime + offsetMs) * 1000);
      if (pauses.length < MOST_PAUSES) pauses.push([began, began + Math.round(duration * 1000)]);
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  return pauses;
}

module.exports = { start };
