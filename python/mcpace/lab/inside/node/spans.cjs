'use strict';
// Spans of the program's requests, by OpenTelemetry's instrumentations.
//
// Times are taken from the monotonic clock: OpenTelemetry's own have whole milliseconds at their beginning.

const Module = require('node:module');
const path = require('node:path');
const { performance } = require('node:perf_hooks');

/** Packages of instrumentations. One is loaded when the program loads a library that it instruments. */
const EAGER = ['http', 'undici'];
const LAZY = {
  pg: 'pg', 'pg-pool': 'pg', ioredis: 'ioredis', redis: 'redis', '@redis/client': 'redis',
  mysql2: 'mysql2', mysql: 'mysql', mongodb: 'mongodb',
};

/** Spans that are kept between two writes. */
const MOST_PENDING = 20_000;

function start(packages, file) {
  const load = Module.createRequire(path.join(packages, 'package.json'));
  const { context, propagation } = load('@opentelemetry/api');
  const { AsyncLocalStorageContextManager } = load('@opentelemetry/context-async-hooks');
  const { W3CTraceContextPropagator } = load('@opentelemetry/core');
  const { BasicTracerProvider } = load('@opentelemetry/sdk-trace-base');
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  const collector = new SpanCollector();
  // The provider is not the global one: a server that configures OpenTelemetry itself keeps its own.
  const provider = new BasicTracerProvider({ spanProcessors: [collector] });
  file.add(() => collector.takeLines());
  const instrument = (name) => {
    for (const exported of Object.values(load(`@opentelemetry/instrumentation-${name}`))) {
      if (typeof exported === 'function' && exported.name.endsWith('Instrumentation')) {
        // A tool's request has no span above it. The instrumentation of ioredis would leave it out.
        new exported({ requireParentSpan: false }).setTracerProvider(provider);
      }
    }
  };
  EAGER.forEach(instrument);
  // The instrumentation of HTTP takes effect when the modules are loaded. Imports of ECMAScript modules see it then, too.
  require('node:http');
  require('node:https');
  Module.syncBuiltinESMExports();
  watchLoads(instrument);
}

/** Loads an instrumentation before the library that it instruments. */
function watchLoads(instrument) {
  const loaded = new Set();
  const original = Module._load;
  Module._load = function load(request, parent, isMain) {
    const name = packageName(request);
    if (Object.hasOwn(LAZY, name) && !loaded.has(LAZY[name])) {
      loaded.add(LAZY[name]);
      try {
        instrument(LAZY[name]);
      } catch {
        // The library stays as it is.
      }
    }
    // An import of an ECMAScript module has no parent, and passes the hook of OpenTelemetry by unless it is a `require`.
    if (!parent && !isMain && Object.hasOwn(LAZY, name)) return Module.createRequire(request)(request);
    return original.call(this, request, parent, isMain);
  };
}

/** `pg` for `pg`, `pg/lib/client` and `/srv/node_modules/pg/lib/index.js`. */
function packageName(request) {
  const at = request.lastIndexOf('node_modules/');
  const [first, second] = (at < 0 ? request : request.slice(at + 'node_modules/'.length)).split('/', 2);
  return first.startsWith('@') ? `${first}/${second}` : first;
}

/** Collects spans that have ended. */
class SpanCollector {
  #began = new WeakMap();
  /** By the name of the instrumentation. */
  #ended = new Map();
  #pending = 0;
  #lost = 0;

  onStart(span) {
    this.#began.set(span, monotonicNow());
  }

  onEnd(span) {
    if (this.#pending >= MOST_PENDING) {
      this.#lost += 1;
      return;
    }
    const library = span.instrumentationScope.name;
    if (!this.#ended.has(library)) this.#ended.set(library, []);
    this.#ended.get(library).push(spanRecord(span, this.#began.get(span), monotonicNow()));
    this.#pending += 1;
  }

  /** A request of OTLP in JSON, where there are spans. */
  *takeLines() {
    if (this.#pending > 0) yield { resourceSpans: [{ scopeSpans: [...this.#ended].map(([name, spans]) => ({ scope: { name }, spans })) }] };
    this.#ended.clear();
    this.#pending = 0;
    if (this.#lost > 0) yield { missing: { source: 'spans', reason: `${this.#lost} spans are left out: too many at once` } };
    this.#lost = 0;
  }

  async forceFlush() {}

  async shutdown() {}
}

/** The difference between the wall clock and the clock of `performance.now()`, in nanoseconds. */
const WALL_OFFSET = BigInt(Math.round(performance.timeOrigin * 1e6));

function monotonicNow() {
  return performance.now();
}

function unixNanos(now) {
  return String(WALL_OFFSET + BigInt(Math.round(now * 1e6)));
}

function spanRecord(span, began, ended) {
  const { traceId, spanId } = span.spanContext();
  const attributes = Object.entries(span.attributes);
  return {
    traceId,
    spanId,
    parentSpanId: span.parentSpanContext?.spanId ?? '',
    name: String(span.name).slice(0, 1000),
    kind: span.kind + 1,
    startTimeUnixNano: unixNanos(began ?? ended),
    endTimeUnixNano: unixNanos(ended),
    attributes: attributes.map(([key, value]) => ({ key, value: { stringValue: String(value).slice(0, 4000) } })),
  };
}

module.exports = { start };
