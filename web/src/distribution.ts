// Latencies on a logarithmic scale: a histogram with percentiles, and the percentiles as a curve.

import { chart, foot, reading, type Line } from "./chart";
import { at, h, section, choice } from "./dom";
import type { Distribution, Percentiles } from "./page.gen";
import { amount, duration, share, tick } from "./quantities";
import { least, linear, logarithmic, most, type Scale } from "./scale";

export interface Told {
  readonly name: string;
  readonly distribution: Distribution;
  readonly latency?: Percentiles | undefined;
}

const QUANTILES = [
  ["p50", 0.5],
  ["p90", 0.9],
  ["p99", 0.99],
  ["p99.9", 0.999],
] as const;
const COLOURS = 8;
/** Minimum number of bins in a histogram. A bin is 6 % wide. */
const LEAST_BINS = 24;

/** The sum of several distributions. */
export function together(all: readonly Distribution[]): Distribution | null {
  const [one] = all;
  if (!one) return null;
  const first = Math.min(...all.map((each) => each.first));
  const end = Math.max(...all.map((each) => each.first + each.counts.length));
  const counts = new Array<number>(end - first).fill(0);
  for (const each of all) each.counts.forEach((count, index) => (counts[each.first - first + index]! += count));
  return { per_decade: one.per_decade, first, counts };
}

/** A section with one chosen distribution as a histogram, and all of them as curves. */
export function distributions(all: readonly Told[], id = "distribution", title = "Latency"): HTMLElement | null {
  if (!all.length) return null;
  const body = h("div", {});
  const draw = (index: number): void => body.replaceChildren(histogram(all[index] as Told));
  draw(0);
  return section(
    id,
    title,
    h(
      "div",
      { class: "beside" },
      h(
        "div",
        {},
        all.length > 1
          ? choice(
              "Latencies of",
              all.map((one) => one.name),
              0,
              draw,
            )
          : null,
        body,
      ),
      curves(all),
    ),
  );
}

/** The histogram of a distribution: the number of calls by latency. */
export function histogram(one: Told): HTMLElement {
  const { per_decade, first, counts } = roomy(one.distribution);
  const low = 10 ** (first / per_decade);
  const high = 10 ** ((first + counts.length) / per_decade);
  const x = logarithmic(low, high, 0, true);
  const places = counts.map((_, index) => x.percent(10 ** ((first + index + 0.5) / per_decade)));
  const highest = most(counts);
  const sum = counts.reduce((whole, count) => whole + count, 0);
  const y = linear(highest * 1.04, 0, 4);
  const said = `${amount(sum)} calls from ${duration(low)} to ${duration(high)}`;
  const drawn = chart(
    {
      title: one.name,
      height: 190,
      places,
      y,
      words: amount,
      said,
      lines: [{ name: "", kind: "hill", values: counts, form: "steps" }],
    },
    percentileLines(one.latency, x),
  );
  const below: number[] = [];
  counts.reduce((before, count, index) => (below[index] = before + count), 0);
  const words = (index: number): string => {
    const from = 10 ** ((first + index) / per_decade);
    const to = 10 ** ((first + index + 1) / per_decade);
    return `${duration(from)} to ${duration(to)}: ${amount(counts[index] ?? 0)} calls; ${share(below[index] ?? 0, sum)} took no longer`;
  };
  return h("div", {}, reading([drawn], foot(x, tick), places, words), figures(one.latency));
}

/** A distribution padded with empty bins at both ends, where a few bins would otherwise fill the whole drawing. */
function roomy(told: Distribution): Distribution {
  const before = Math.ceil(Math.max(LEAST_BINS - told.counts.length, 0) / 2);
  const room = new Array<number>(before).fill(0);
  return { ...told, first: told.first - before, counts: [...room, ...told.counts, ...room] };
}

function percentileLines(latency: Percentiles | undefined, x: Scale): HTMLElement | null {
  if (!latency) return null;
  const values = [latency.p50, latency.p90, latency.p99, latency.p999];
  return h(
    "div",
    { class: "percentiles", "aria-hidden": "true" },
    QUANTILES.map(([name], index) => {
      const place = x.percent(values[index] ?? 0);
      const mark = at(h("span", { class: place > 88 ? "left" : "" }, h("i", {}, name)), place);
      (mark.firstElementChild as HTMLElement).style.top = `${index * 15}px`;
      return mark;
    }),
  );
}

function figures(latency: Percentiles | undefined): HTMLElement | null {
  if (!latency) return null;
  const told: [string, number][] = [
    ["p50", latency.p50],
    ["p90", latency.p90],
    ["p99", latency.p99],
    ["p99.9", latency.p999],
    ["max", latency.max],
    ["mean", latency.mean],
  ];
  return h(
    "dl",
    { class: "inline" },
    told.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, duration(value)))),
  );
}

/** Latency by percentile. The scale gives each further nine (90 %, 99 %, 99.9 %) as much room as the one before. */
export function curves(all: readonly Told[]): HTMLElement {
  const largest = Math.max(...all.map((one) => total(one.distribution)));
  const nines = Math.min(Math.max(Math.log10(largest), 1), 5);
  const steps = Array.from({ length: 161 }, (_, index) => (index / 160) * nines);
  const places = steps.map((step) => (100 * step) / nines);
  const lines: Line[] = all.map((one, index) => ({
    name: all.length > 1 ? one.name : "",
    kind: `colour-${index % COLOURS} ${index >= COLOURS ? "dashed" : ""}`,
    values: steps.map((step) => quantile(one, 1 - 10 ** -step)),
  }));
  const values = lines.flatMap((line) => line.values.filter((value): value is number => typeof value === "number"));
  const y = logarithmic(least(values), most(values), 2);
  const x: Scale = {
    logarithmic: true,
    percent: (value) => (100 * value) / nines,
    ticks: [0, 1, 2, 3, 4, 5].filter((step) => step <= nines),
  };
  const drawn = chart({
    title: "by percentile",
    height: 190,
    places,
    y,
    words: tick,
    said: "latency by percentile",
    lines,
  });
  const words = (index: number): string => {
    const told = lines.map(
      (line) =>
        `${line.name ? `${line.name} ` : ""}${typeof line.values[index] === "number" ? duration(line.values[index] as number) : "–"}`,
    );
    return `${percentile(steps[index] ?? 0)}: ${told.join(", ")}`;
  };
  return h("div", { class: "curves" }, reading([drawn], foot(x, percentile), places, words));
}

function percentile(step: number): string {
  const share = 100 * (1 - 10 ** -step);
  return `p${Number(share.toFixed(Math.max(0, Math.ceil(step) - 1)))}`;
}

/**
 * A quantile, estimated from the bins and limited to the measured minimum and maximum. `undefined` where there are too
 * few calls for it.
 */
function quantile(one: Told, share: number): number | undefined {
  const { per_decade, first, counts } = one.distribution;
  const sum = total(one.distribution);
  if (share > 0 && (1 - share) * sum < 0.999) return undefined;
  let left = share * sum;
  for (let index = 0; index < counts.length; index++) {
    const count = counts[index] ?? 0;
    if (count > 0 && left <= count) {
      const value = 10 ** ((first + index + left / count) / per_decade);
      return one.latency ? Math.min(Math.max(value, one.latency.min), one.latency.max) : value;
    }
    left -= count;
  }
  return one.latency?.max;
}

function total(distribution: Distribution): number {
  return distribution.counts.reduce((sum, count) => sum + count, 0);
}
