// From values to percent of a plot's width or height, and round values to name on its axis.

export interface Scale {
  readonly logarithmic: boolean;
  /** Where a value lies, kept inside the plot. */
  percent(value: number): number;
  readonly ticks: readonly number[];
}

const LOGARITHMIC_FROM = 20;
/** Below it a number's parts are no numbers any more. */
const SMALLEST = 1e-290;
const TENTHS = Array.from({ length: 90 }, (_, number) => 1 + number / 10);
/** Percent kept free at both ends, so that no dot is cut. */
const INSET = 2;

/** Shows all values: from zero where they are close together, over whole decades where not. */
export function covering(values: Iterable<number>, inset = INSET): Scale {
  const positive = [...values].filter((value) => value > 0 && Number.isFinite(value));
  const [low, high] = [least(positive), most(positive)];
  if (!positive.length) return linear(1, inset);
  return high / low < LOGARITHMIC_FROM ? linear(high, inset) : logarithmic(low, high, inset);
}

/** The smallest of as many as there are: `Math.min` takes no more than a stack holds. */
export function least(values: readonly number[]): number {
  return values.reduce((before, value) => Math.min(before, value), Infinity);
}

/** The greatest of them. */
export function most(values: readonly number[]): number {
  return values.reduce((before, value) => Math.max(before, value), -Infinity);
}

/** From zero to `high`. */
export function linear(high: number, inset = 0, named = 5): Scale {
  const top = high > SMALLEST && Number.isFinite(high) ? high : 1;
  return { logarithmic: false, percent: (value) => placed(value / top, inset), ticks: round(top, named) };
}

/** From `low` to `high`, at least; `tight` ends there, otherwise at whole decades. */
export function logarithmic(low: number, high: number, inset = 0, tight = false): Scale {
  let from = Math.log10(Math.max(low, SMALLEST));
  let to = Math.log10(Math.max(high, SMALLEST));
  if (!tight) [from, to] = [Math.floor(from + 1e-9), Math.ceil(to - 1e-9)];
  if (to - from < 1e-6) to = from + 1;
  return {
    logarithmic: true,
    percent: (value) => placed(value > 0 ? (Math.log10(value) - from) / (to - from) : 0, inset),
    ticks: decades(from, to),
  };
}

function placed(part: number, inset: number): number {
  return inset + (100 - 2 * inset) * Math.min(Math.max(part, 0), 1);
}

function decades(from: number, to: number): number[] {
  const step = Math.max(1, Math.ceil((to - from) / 6));
  const ticks: number[] = [];
  for (let power = Math.ceil(from - 1e-9); power <= to + 1e-9; power += step) ticks.push(10 ** power);
  if (ticks.length > 2) return ticks;
  // Within one or two decades powers of ten alone say too little; within a part of one every figure counts.
  const finer = [[1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9], TENTHS].map((factors) => within(from, to, factors));
  return finer.find((each) => each.length > 2) ?? finer.at(-1) ?? [];
}

function within(from: number, to: number, factors: readonly number[]): number[] {
  const ticks: number[] = [];
  for (let power = Math.floor(from); power <= to; power++) {
    for (const factor of factors) {
      const value = factor * 10 ** power;
      if (Math.log10(value) >= from - 1e-9 && Math.log10(value) <= to + 1e-9) ticks.push(value);
    }
  }
  return ticks;
}

function round(high: number, named: number): number[] {
  const raw = high / named;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= raw * 0.999) ?? raw;
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, number) => step * number);
}
