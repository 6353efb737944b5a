// A load over time: successful replies and errors, latencies, users and the generator, over one common axis.

import { chart, foot, reading, type Line } from "./chart";
import { h } from "./dom";
import type { Series } from "./page.gen";
import { amount, duration, share, tick } from "./quantities";
import { linear, logarithmic, type Scale } from "./scale";

const BUSY_FROM = 0.5;

/** The time series of a load. For a load in progress, the axis extends to its planned end. */
export function series(told: Series, planned_s = 0): HTMLElement {
  const end = Math.max((told.at_s.at(-1) ?? 0) + told.step_s, planned_s);
  const start = told.at_s[0] ?? 0;
  const x: Scale = { ...linear(end - start, 0, 8), logarithmic: false };
  const places = told.at_s.map((at) => x.percent(at - start + told.step_s / 2));
  const charts = [rates(told, places), errors(told, places), latencies(told, places), ...beside(told, places)].flatMap(
    (one) => one ?? [],
  );
  for (const one of charts) shade(one, x.percent(told.warm_up * told.step_s));
  const words = (index: number): string => {
    const second = `second ${(told.at_s[index] ?? 0).toFixed(0)}${index < told.warm_up ? " (warm-up)" : ""}`;
    const parts = [
      `${amount(told.ok[index] ?? 0)} calls/s`,
      told.errors[index] ? `${amount(told.errors[index] ?? 0)} errors` : "no errors",
      ...(
        [
          ["p50", told.p50_s],
          ["p90", told.p90_s],
          ["p99", told.p99_s],
          ["max", told.max_s],
        ] as const
      ).flatMap(([name, values]) => {
        const value = values[index];
        return value === null || value === undefined ? [] : [`${name} ${duration(value)}`];
      }),
      `${amount(told.users[index] ?? 0)} users`,
      `generator ${share(told.busy[index] ?? 0, 1)} busy`,
    ];
    return `${second}: ${parts.join(" · ")}`;
  };
  return h(
    "div",
    { class: "series" },
    reading(
      charts,
      foot(x, (value) => (value === 0 ? "0 s" : `${amount(value)} s`)),
      places,
      words,
    ),
  );
}

function rates(told: Series, places: readonly number[]): HTMLElement {
  const most = Math.max(...told.ok, ...told.due, 1);
  const lines: Line[] = [{ name: "good replies", kind: "good", values: told.ok, form: "steps" }];
  // In a closed load a call is due when its user is ready, so the line would coincide with that of the replies.
  if (told.due.some((due, index) => due > 1.05 * ((told.ok[index] ?? 0) + (told.errors[index] ?? 0) / told.step_s))) {
    lines.push({ name: "due", kind: "due", values: told.due });
  }
  const said = `${amount(Math.max(...told.ok))} calls a second at most, ${amount(told.errors.reduce((sum, count) => sum + count, 0))} errors`;
  return chart({
    title: "calls a second",
    height: 120,
    places,
    y: linear(most * 1.06, 0, 4),
    words: amount,
    lines,
    said,
  });
}

/** Errors on a separate scale, because a few errors would be invisible beside thousands of successful replies. */
function errors(told: Series, places: readonly number[]): HTMLElement | null {
  const most = Math.max(...told.errors);
  if (!most) return null;
  const lines: Line[] = [{ name: "", kind: "wrong", values: told.errors, form: "bars" }];
  const said = `${amount(most)} errors at most`;
  return chart({
    title: told.step_s > 1 ? `errors in ${told.step_s} s` : "errors a second",
    height: 52,
    places,
    y: linear(most * 1.06, 0, 2),
    words: amount,
    lines,
    said,
  });
}

function latencies(told: Series, places: readonly number[]): HTMLElement | null {
  const named = [
    ["p50", told.p50_s],
    ["p90", told.p90_s],
    ["p99", told.p99_s],
    ["max", told.max_s],
  ] as const;
  const values = named.flatMap(([, each]) => each.filter((value): value is number => value !== null && value > 0));
  if (!values.length) return null;
  const lines = named.map(([name, each]) => ({ name, kind: name, values: each }));
  const y = logarithmic(Math.min(...values), Math.max(...values), 3);
  const said = `latency from ${duration(Math.min(...values))} to ${duration(Math.max(...values))}`;
  return chart({ title: "latency", height: 150, places, y, words: tick, lines, said });
}

function* beside(told: Series, places: readonly number[]): Generator<HTMLElement> {
  const users = Math.max(...told.users);
  if (Math.min(...told.users) !== users) {
    const lines: Line[] = [{ name: "", kind: "quiet", values: told.users, form: "steps" }];
    yield chart({
      title: "users",
      height: 52,
      places,
      y: linear(users * 1.06, 0, 2),
      words: amount,
      lines,
      said: `${users} users at most`,
    });
  }
  if (Math.max(...told.busy) >= BUSY_FROM) {
    const lines: Line[] = [{ name: "", kind: "quiet", values: told.busy, form: "steps" }];
    yield chart({
      title: "generator busy",
      height: 52,
      places,
      y: linear(1, 0, 2),
      words: (value) => share(value, 1),
      lines,
      said: "how busy the generator was",
    });
  }
}

function shade(one: HTMLElement, percent: number): void {
  if (percent <= 0) return;
  const area = h("div", { class: "warm-up", "data-tip": "warm-up: left out of all figures" });
  area.style.width = `${percent}%`;
  one.querySelector(".field")?.prepend(area);
}
