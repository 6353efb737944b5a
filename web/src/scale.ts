// Scales, which convert values to percent of a plot's width or height and choose round values for the axis.

export interface Scale {
  readonly logarithmic: boolean;
  /** Position of a value, limited to the plot. */
  percent(value: number): number;
  readonly ticks: readonly number[];
}

const LOGARITHMIC_FROM = 20;
/** Smallest usable value. Fractions of smaller numbers would underflow. */
const SMALLEST = 1e-290;
const TENTHS = Array.from({ length: 90 }, (_, number) => 1 + number / 10);
/** Margin at both ends in percent, so that no dot is clipped. */
const INSET = 2;

/** A scale for all values: linear from zero where they are close together, otherwise logarithmic over whole decades. */
export function covering(values: Iterable<number>, inset = INSET): Scale {
  const positive = [...values].filter((value) => value > 0 && Number.isFinite(value));
  const [low, high] = [least(positive), most(positive)];
  if (!positive.length) return linear(1, inset);
  return high / low < LOGARITHMIC_FROM ? linear(high, inset) : logarithmic(low, high, inset);
}

/** The smallest value of a list of any length. `Math.min` accepts only as many arguments as fit on the stack. */
export function least(values: readonly number[]): number {
  return values.reduce((before, value) => Math.min(before, value), Infinity);
}

/** The greatest value of a list of any length. */
export function most(values: readonly number[]): number {
  return values.reduce((before, value) => Math.max(before, value), -Infinity);
}

/** A linear scale from zero to `high`. */
export function linear(high: number, inset = 0, named = 5): Scale {
  const top = high > SMALLEST && Number.isFinite(high) ? high : 1;
  return { logarithmic: false, percent: (value) => placed(value / top, inset), ticks: round(top, named) };
}

/** A logarithmic scale from `low` to `high`: exactly that range with `tight`, otherwise extended to whole decades. */
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
  // Powers of ten alone are too few ticks for one or two decades, and a part of a decade needs ticks at every figure.
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
