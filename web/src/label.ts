// Names on the pieces of a bar. The style sheet shows a name where it fits the width of its piece, also on paper.

import { at, h } from "./dom";

/** Numbers of letters for which the style sheet has a width. */
const SIZES = [4, 6, 7, 8, 10, 11, 14, 18, 22, 27, 33, 40];
/** Minimum width of a piece with a name, in percent. Below it no name fits on any screen. */
const LEAST = 1.5;

/** A bar with the names of its pieces. */
export function named(bar: SVGSVGElement, labels: readonly (HTMLElement | null)[]): HTMLElement {
  return h("div", { class: "named" }, bar, labels);
}

/** A label with the longest of `words`, ordered from long to short, that fits a piece; positions in percent. */
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
