// Labels under and beside plots. Read by nobody but the eye: rows say their values themselves.

import { at, h, s } from "./dom";
import { tick } from "./quantities";
import type { Scale } from "./scale";

/** Below a plot. Of more than `most` values every second or third is named. */
export function horizontal(scale: Scale, words: (value: number) => string = tick, most = 9): HTMLElement {
  const every = Math.ceil(scale.ticks.length / most);
  const labels = scale.ticks
    .filter((_, index) => index % every === 0)
    .map((value) => {
      const place = scale.percent(value);
      const side = place < 4 ? "start" : place > 96 ? "end" : "middle";
      return at(h("span", { class: side }, words(value)), place);
    });
  return h(
    "div",
    { class: labels.length > 7 ? "axis crowded" : labels.length > 4 ? "axis many" : "axis", "aria-hidden": "true" },
    labels,
  );
}

/** Beside a plot, upwards. */
export function vertical(scale: Scale, words: (value: number) => string): HTMLElement {
  const labels = scale.ticks.map((value) => {
    const label = h("span", {}, words(value));
    label.style.bottom = `${scale.percent(value).toFixed(2)}%`;
    return label;
  });
  return h("div", { class: "upright", "aria-hidden": "true" }, labels);
}

/** A line at each tick of a strip. */
export function grid(scale: Scale, height: number | string): SVGLineElement[] {
  return scale.ticks.map((value) => {
    const x = `${scale.percent(value).toFixed(2)}%`;
    return s("line", { class: "grid", x1: x, x2: x, y1: 0, y2: height });
  });
}
