// Formats figures for readers, like python/mcpace/report/words/quantities.py. A test compares the two.

const NO_BREAK = "\u00a0";

/** `3.01 s`, `4.1 ms`, `870 µs`; zero is always `0 s`. */
export function duration(seconds: number): string {
  if (seconds === 0) return `0${NO_BREAK}s`;
  const size = Math.abs(seconds);
  if (size >= 0.9995) return `${figure(seconds)}${NO_BREAK}s`;
  if (size >= 0.9995e-3) return `${figure(seconds / 1e-3)}${NO_BREAK}ms`;
  return `${figure(seconds / 1e-6)}${NO_BREAK}µs`;
}

/** A number with about three significant digits, and without decimals from a hundred on. */
export function figure(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95) return grouped(value, 0);
  if (size >= 9.995) return value.toFixed(1);
  if (size >= 0.9995 || size === 0) return value.toFixed(2);
  return value.toFixed(3);
}

/** A number of calls or users: `50`, `12,345`, `0.5`. */
export function amount(value: number): string {
  return Number.isInteger(value) || value >= 100 ? grouped(value, 0) : figure(value);
}

/** A ratio: `734×`, `5.2×`, `1.04×`. */
export function times(ratio: number): string {
  if (ratio >= 1000) return `${grouped(Number(ratio.toPrecision(2)), 0)}×`;
  if (ratio >= 99.5) return `${grouped(ratio, 0)}×`;
  if (ratio >= 9.95) return `${ratio.toFixed(0)}×`;
  return `${ratio >= 1.995 ? ratio.toFixed(1) : ratio.toFixed(2)}×`;
}

/** `97 %`; a share that isn't 0 is never rounded to 0 but written as `<1 %`. */
export function share(part: number, whole: number): string {
  const percent = whole > 0 ? (100 * part) / whole : 0;
  if (percent > 0 && percent < 1) return `<1${NO_BREAK}%`;
  if (percent > 99 && percent < 100) return `99${NO_BREAK}%`;
  return `${percent.toFixed(0)}${NO_BREAK}%`;
}

/** `812 B`, `1.4 kB`, `2.0 MB`. */
export function size(bytes: number): string {
  for (const [limit, unit] of [
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
  ] as const) {
    if (bytes >= limit) return `${(bytes / limit).toFixed(1)}${NO_BREAK}${unit}`;
  }
  return `${bytes.toFixed(0)}${NO_BREAK}B`;
}

/** A round duration on an axis, without unnecessary digits. */
export function tick(seconds: number): string {
  if (seconds === 0) return "0";
  const [value = "", unit = ""] = duration(seconds).split(NO_BREAK);
  return `${value.includes(".") ? value.replace(/\.?0+$/, "") : value}${NO_BREAK}${unit}`;
}

function grouped(value: number, digits: number): string {
  const [whole = "", part] = value.toFixed(digits).split(".");
  const spaced = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return part === undefined ? spaced : `${spaced}.${part}`;
}
