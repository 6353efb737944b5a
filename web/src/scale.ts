// From values to percent of a plot's width or height, and round values to name on its axis.

export interface Scale {
  readonly logarithmic: boolean;
  /** Where a value lies, kept inside the plot. */
  percent(value: number): number;
  readonly ticks: readonly number[];
}

const LOGARITHMIC_FROM = 20;
/** Percent kept free at both ends, so that no dot is cut. */
const INSET = 2;

/** Shows all values: from zero where they are close together, over whole decades where not. */
export function covering(values: Iterable<number>, inset = INSET): Scale {
  const positive = [...values].filter((value) => value > 0 && Number.isFinite(value));
  const low = Math.min(...positive);
  const high = Math.max(...positive);
  if (!positive.length) return linear(1, inset);
  return high / low < LOGARITHMIC_FROM ? linear(high, inset) : logarithmic(low, high, inset);
}

/** From zero to `high`. */
export function linear(high: number, inset = 0, most = 5): Scale {
  const top = high > 0 ? high : 1;
  return { logarithmic: false, percent: (value) => placed(value / top, inset), ticks: round(top, most) };
}

/** From `low` to `high`, at least; `tight` ends there, otherwise at whole decades. */
export function logarithmic(low: number, high: number, inset = 0, tight = false): Scale {
  let from = Math.log10(low);
  let to = Math.log10(high);
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
  // Within one or two decades powers of ten alone say too little.
  const finer: number[] = [];
  for (let power = Math.floor(from); power <= to; power++) {
    for (const factor of [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (Math.log10(value) >= from - 1e-9 && Math.log10(value) <= to + 1e-9) finer.push(value);
    }
  }
  return finer;
}

function round(high: number, most: number): number[] {
  const raw = high / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= raw * 0.999) ?? raw;
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, number) => step * number);
}
