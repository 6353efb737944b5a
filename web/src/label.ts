// Names on the pieces of a bar: shown where they fit, which the style decides by each piece's own width, on paper too.

import { at, h } from "./dom";

/** Letters for which the style has a width. */
const SIZES = [4, 6, 7, 8, 10, 11, 14, 18, 22, 27, 33, 40];
/** Percent below which no name fits on any screen. */
const LEAST = 1.5;

/** A bar with the names of its pieces over it. */
export function named(bar: SVGSVGElement, labels: readonly (HTMLElement | null)[]): HTMLElement {
  return h("div", { class: "named" }, bar, labels);
}

/** The longest of some words, from long to short, that has room on a piece; places in percent. */
export function label(left: number, width: number, kind: string, ...words: readonly string[]): HTMLElement | null {
  if (width < LEAST) return null;
  let longer = "";
  const names = words.map((each) => {
    const size = SIZES.find((letters) => letters >= each.length) ?? 40;
    const name = h("i", { class: `n${size} ${longer}` }, each);
    longer = `u${size}`;
    return name;
  });
  const place = at(h("span", { class: `label ${kind}`, "aria-hidden": "true" }, names), left);
  place.style.width = `${Math.min(width, 100 - left).toFixed(3)}%`;
  return place;
}
