// The ledgers: one stacked bar for each case, in seconds or as shares of its total.

import { horizontal } from "./axis";
import { choice, h, legend, s, section } from "./dom";
import { label, named } from "./label";
import { band, bands, panel, type Band } from "./matrix";
import type { CaseShown, Page, Share } from "./page.gen";
import { duration, share } from "./quantities";
import { roving } from "./roving";
import { linear, most } from "./scale";

const HEIGHT = 22;

/** The section with the ledgers; `null` where no case has one. */
export function ledger(page: Page): HTMLElement | null {
  const found = bands(page, (one) => one.ledger.length > 0);
  if (!found.length) return null;
  const body = h("div", {});
  const words = new Map(page.parts.map((part) => [part.key, part.words]));
  const draw = (shares: boolean): void => body.replaceChildren(...found.map((one) => drawn(one, shares, words)));
  draw(false);
  const used = new Set(
    page.cases.flatMap((one) =>
      [...one.ledger, ...one.split].filter((part) => part.seconds > 0).map((part) => part.key),
    ),
  );
  const key = page.parts
    .filter((part) => used.has(part.key))
    .map((part) => [`part ${kind(part.key)}`, part.key, part.words] as const);
  return section(
    "ledger",
    "Where the time went",
    h("p", { class: "lead" }, page.ledger_words),
    h(
      "div",
      { class: "controls" },
      choice("Bars show", ["seconds", "shares"], 0, (index) => draw(index === 1)),
      legend(key),
    ),
    body,
  );
}

function drawn(one: Band, shares: boolean, words: ReadonlyMap<string, string>): HTMLElement {
  const alone = one.panels.every((each) => each.cases.length === 1);
  const rowed = (cases: readonly CaseShown[], names: readonly string[], title: string): HTMLElement => {
    const longest = Math.max(most(cases.map((shown) => total(shown.ledger))), 1e-12);
    const rows = cases.map((shown, index) => ({
      who: names[index] ?? "",
      plot: bar(shown, shares ? total(shown.ledger) : longest, words),
      figure: duration(total(shown.ledger)),
      tip: shown.server_notes ? `${names[index]}: ${shown.server_notes}` : (names[index] ?? ""),
    }));
    const told = roving(panel(title, rows, shares ? null : horizontal(linear(longest))), "svg.bar");
    cases.forEach((shown, index) => {
      if (shown.server_notes) told.append(h("p", { class: "said" }, `${names[index]}: ${shown.server_notes}`));
    });
    return told;
  };
  if (alone) {
    const cases = one.panels.map((each) => each.cases[0] as CaseShown);
    return band(one.target, [
      rowed(
        cases,
        one.panels.map((each) => each.title),
        cases[0]?.subject ?? "",
      ),
    ]);
  }
  return band(
    one.target,
    one.panels.map((each) =>
      rowed(
        each.cases,
        each.cases.map((shown) => shown.subject),
        each.title,
      ),
    ),
  );
}

function bar(shown: CaseShown, whole: number, words: ReadonlyMap<string, string>): HTMLElement {
  const sum = total(shown.ledger);
  const picture = s("svg", {
    class: "bar",
    height: HEIGHT,
    role: "img",
    "aria-label": told(shown),
    "data-tip": told(shown),
  });
  const names: (HTMLElement | null)[] = [];
  let from = 0;
  for (const part of shown.ledger) {
    const width = whole > 0 ? (100 * part.seconds) / whole : 0;
    if (width <= 0) continue;
    const tip = `${part.key}: ${duration(part.seconds)}, ${share(part.seconds, sum)} – ${words.get(part.key) ?? ""}`;
    picture.append(rect(from, width, 2, HEIGHT - 4, `part ${kind(part.key)}`, tip));
    const over = part.key === "server" && shown.split.length ? "over-layers" : "";
    names.push(label(from, width, `on-${kind(part.key)} ${over}`, part.key));
    if (part.key === "server") picture.append(...layers(shown.split, from, width, words));
    from += width;
  }
  // A bar that is thinner than the gaps between its parts is drawn as a single mark, so that it is visible.
  if (from > 0 && from < 0.5)
    picture.replaceChildren(rect(0, 0.5, 2, HEIGHT - 4, "sliver", `all parts: ${duration(sum)}`));
  return named(picture, names);
}

/** The layers that the server reported, as a strip along the bottom of the server's part. */
function layers(
  split: readonly Share[],
  from: number,
  width: number,
  words: ReadonlyMap<string, string>,
): SVGRectElement[] {
  const whole = total(split);
  let left = from;
  return split.flatMap((layer) => {
    const own = whole > 0 ? (width * layer.seconds) / whole : 0;
    const tip = `${layer.key}: ${duration(layer.seconds)}, ${share(layer.seconds, whole)} of server – ${words.get(layer.key) ?? ""}`;
    const drawn = own > 0 ? [rect(left, own, HEIGHT - 8, 6, `layer ${kind(layer.key)}`, tip)] : [];
    left += own;
    return drawn;
  });
}

/** A piece of a bar; positions in percent. */
export function rect(x: number, width: number, y: number, height: number, type: string, tip = ""): SVGRectElement {
  return s("rect", {
    class: type,
    x: `${x.toFixed(3)}%`,
    width: `${width.toFixed(3)}%`,
    y,
    height,
    "data-tip": tip || null,
  });
}

/** The CSS class of a key. Text from a peer never becomes a class. */
export function kind(key: string): string {
  return /^[a-z][a-z.-]{0,30}$/.test(key) ? `k-${key.replace(/\./g, "-")}` : "k-other";
}

function total(parts: readonly Share[]): number {
  return parts.reduce((sum, part) => sum + part.seconds, 0);
}

function told(shown: CaseShown): string {
  const parts = shown.ledger.map((part) => `${part.key} ${duration(part.seconds)}`).join("; ");
  return shown.server_notes ? `${parts}; ${shown.server_notes}` : parts;
}
