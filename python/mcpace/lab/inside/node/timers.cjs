'use strict';
// Timers that code waits for: setTimeout, and the one of timers/promises, each with the stack that set it.
//
// Only timers that go off are reported. A time-out that is cleared, put off (`refresh`) or that does not keep the program
// running (`unref`) guards other work, and is no wait.
//
// All timers are reported, or none any more. A loop in the background is known by its timer that runs when a call begins.
// If such timers were missing, others of the loop would look like waits of the call.

const Module = require('node:module');
const timers = require('node:timers');
const promises = require('node:timers/promises');

/** Shorter timers end before they are worth a look. */
const SHORTEST_MS = 1;

const MOST_FRAMES = 32;

/** Stacks in all, and timers that are kept between two writes. */
const MOST_STACKS = 1_000;
const MOST_TIMERS = 10_000;

/** Stacks are read until that has taken more than this part of the time since the start, and some time besides. */
const MOST_SHARE = 0.03;
const FREE_US = 50_000;

const nowUs = () => Number(process.hrtime.bigint() / 1000n);

class Timers {
  #numbers = new Map();
  #stacks = [];
  #fired = [];
  #startedUs = nowUs();
  #spentUs = 0;
  #endReason = '';
  isEnded = false;

  /** The moment and the stack at which `setter` was called. The stack is read when the timer goes off. */
  begin(setter) {
    const began = { us: nowUs() };
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = MOST_FRAMES;
    Error.captureStackTrace(began, setter);
    Error.stackTraceLimit = stackTraceLimit;
    return began;
  }

  /** Notes that the timer went off. */
  end(began) {
    const endedUs = nowUs();
    if (this.isEnded) return;
    try {
      this.#fired.push([began.us, endedUs, this.#stackNumber(readFrames(began))]);
    } catch {
      this.#stop('the program forbids a look at its stacks');
    }
    this.#spentUs += nowUs() - endedUs;
    const most = FREE_US + (endedUs - this.#startedUs) * MOST_SHARE;
    if (this.#spentUs > most || this.#fired.length >= MOST_TIMERS || this.#numbers.size > MOST_STACKS) {
      this.#stop('the program sets too many');
    }
  }

  #stop(why) {
    this.isEnded = true;
    this.#endReason = `later timers are left out: ${why}`;
  }

  *takeLines() {
    if (this.#endReason) yield { missing: { source: 'stacks', reason: this.#endReason } };
    this.#endReason = '';
    if (this.#fired.length > 0) yield { timers: this.#fired.splice(0), timerStacks: this.#stacks.splice(0) };
  }

  #stackNumber(frames) {
    const key = JSON.stringify(frames);
    if (!this.#numbers.has(key)) {
      this.#stacks.push([this.#numbers.size, frames]);
      this.#numbers.set(key, this.#numbers.size);
    }
    return this.#numbers.get(key);
  }
}

/** Function, file, line and column of each call, the innermost first, without those of Node.js that lead there. */
function readFrames(began) {
  const { prepareStackTrace } = Error;
  Error.prepareStackTrace = (_, sites) => sites;
  try {
    const sites = began.stack;
    // The function that is given to a promise stands on the line on which the promise is made.
    const isOfPromise = sites[1]?.isConstructor() && sites[1].getFunctionName() === 'Promise' && sites[2];
    return sites.slice(isOfPromise ? 2 : 0).map((site) => [
      site.getFunctionName() ?? '', site.getFileName() ?? '', site.getLineNumber() ?? 0, site.getColumnNumber() ?? 0,
    ]).filter(([, file]) => !file.startsWith('node:internal/'));
  } finally {
    Error.prepareStackTrace = prepareStackTrace;
  }
}

function start(file) {
  const noted = new Timers();
  file.add(() => noted.takeLines());
  globalThis.setTimeout = timers.setTimeout = watchCallback(timers.setTimeout, noted);
  promises.setTimeout = watchPromise(promises.setTimeout, noted);
  Module.syncBuiltinESMExports();
}

function watchCallback(original, noted) {
  function setTimeout(callback, delay, ...values) {
    const isWatched = typeof callback === 'function' && delay >= SHORTEST_MS && !noted.isEnded;
    if (!isWatched) return original(callback, delay, ...values);
    const began = noted.begin(setTimeout);
    const timer = original(function fire(...given) {
      if (timer.hasRef() && timer._idleStart === armed) noted.end(began);
      return callback.apply(this, given);
    }, delay, ...values);
    const armed = timer._idleStart;
    return timer;
  }
  return likeOriginal(setTimeout, original);
}

function watchPromise(original, noted) {
  function setTimeout(delay, value, options) {
    const waits = original(delay, value, options);
    if (!(delay >= SHORTEST_MS) || options?.ref === false || noted.isEnded) return waits;
    const began = noted.begin(setTimeout);
    return waits.then((result) => {
      noted.end(began);
      return result;
    });
  }
  return likeOriginal(setTimeout, original);
}

/** Has the members of the original, such as the one by which `util.promisify` finds the function for promises. */
function likeOriginal(watched, original) {
  for (const key of Reflect.ownKeys(original)) {
    if (key !== 'prototype') Object.defineProperty(watched, key, Object.getOwnPropertyDescriptor(original, key));
  }
  return watched;
}

module.exports = { start };
