// A run, from its verdict to how it was measured.

import { calls } from "./calls";
import { comparison, factors } from "./compare";
import { h, type Child } from "./dom";
import { findings } from "./findings";
import { layers } from "./layers";
import { ledger } from "./ledger";
import { load } from "./load";
import type { Head, Page } from "./page.gen";
import { search } from "./search";
import { servers } from "./servers";
import { setup } from "./setup";
import { trials } from "./trials";

/** All of it. What matters most comes first: which part that is depends on what was measured. */
export function run(page: Page): Child[] {
  const wire = calls(page);
  const open = wire ? (index: number, finding?: number): void => wire.show(index, finding) : null;
  const compared = page.comparison !== undefined;
  const [first, ...rest] = [
    ...(page.comparison ? comparison(page.comparison) : []),
    ...(page.servers ? servers(page.servers) : []),
    ...(page.layers ? layers(page.layers) : []),
  ];
  return [
    head(page.head),
    page.search ? search(page.search) : null,
    page.factors ? factors(page.factors) : null,
    first,
    compared ? rest : null,
    trials(page, (index) => open?.(index)),
    findings(page, open),
    wire?.element,
    compared ? null : rest,
    // Of a run that is a load it comes first; beside other things, after them.
    wire ? ledger(page) : null,
    page.loads.flatMap((one, number) => load(one, number, page.loads.length > 1)),
    wire ? null : ledger(page),
    setup(page),
  ];
}

/** What a run is and what it found. */
export function head(told: Head): HTMLElement {
  const [verdict = "", ...more] = told.verdict;
  return h(
    "header",
    { class: "head" },
    h(
      "p",
      { class: "facts" },
      h("span", { class: "tag" }, told.kind),
      h("time", {}, when(told.started)),
      h("span", {}, `mcpace ${told.mcpace}`),
      h("span", {}, told.machine),
    ),
    told.partial
      ? h(
          "p",
          { class: "banner", role: "note" },
          "Interrupted: this is what was measured until then; the rest is missing.",
        )
      : null,
    h("h1", {}, verdict),
    more.length ? h("p", { class: "more-verdict" }, more.join(" ")) : null,
  );
}

/** A moment as it was written, less what nobody reads. */
export function when(started: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)/.exec(started);
  return match ? `${match[1]} ${match[2]}` : started;
}
