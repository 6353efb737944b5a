// Labels below and beside plots. They are hidden from screen readers, because the rows contain their values as text.

import { at, h, s } from "./dom";
import { tick } from "./quantities";
import type { Scale } from "./scale";

/** Minimum distance between two labels, in percent. */
const CLOSEST = 8.5;

/**
 * Labels below a plot. Where there are more than `most` ticks, only every second or third has a label. A label that
 * would touch the one before it is left out.
 */
export function horizontal(scale: Scale, words: (value: number) => string = tick, most = 9): HTMLElement {
  const every = Math.ceil(scale.ticks.length / most);
  const named = scale.ticks
    .filter((_, index) => index % every === 0)
    .map((value) => [value, scale.percent(value)] as const);
  let before = -100;
  const labels = named.flatMap(([value, place]) => {
    if (place - before < CLOSEST) return [];
    before = place;
    const side = place < 4 ? "start" : place > 98.5 ? "end" : "middle";
    return at(h("span", { class: side }, words(value)), place);
  });
  const crowd = labels.length > 7 ? "axis crowded" : labels.length > 4 ? "axis many" : "axis";
  return h("div", { class: crowd, "aria-hidden": "true" }, labels);
}

/** Labels beside a plot, from bottom to top. */
export function vertical(scale: Scale, words: (value: number) => string): HTMLElement {
  const labels = scale.ticks.map((value) => {
    const label = h("span", {}, words(value));
    label.style.bottom = `${scale.percent(value).toFixed(2)}%`;
    return label;
  });
  return h("div", { class: "upright", "aria-hidden": "true" }, labels);
}

/** Vertical lines at the ticks of a strip. */
export function grid(scale: Scale, height: number | string): SVGLineElement[] {
  return scale.ticks.map((value) => {
    const x = `${scale.percent(value).toFixed(2)}%`;
    return s("line", { class: "grid", x1: x, x2: x, y1: 0, y2: height });
  });
}
