// The view of a run, from its verdict to its set-up.

import { calls } from "./calls";
import { comparison, factors } from "./compare";
import { h, indexed, type Child } from "./dom";
import { findings } from "./findings";
import { insides } from "./inside";
import { layers } from "./layers";
import { ledger } from "./ledger";
import { load } from "./load";
import type { Head, Page } from "./page.gen";
import { search } from "./search";
import { servers } from "./servers";
import { setup } from "./setup";
import { tables } from "./tables";
import { trials } from "./trials";

/** All parts of a run. The findings follow the verdict; the order of the other parts depends on the experiment. */
export function run(page: Page): Child[] {
  const wire = part("The calls", () => calls(page));
  const shown = wire !== null && "show" in wire ? wire : null;
  const open = shown ? (index: number, finding?: number): void => shown.show(index, finding) : null;
  const compared = page.comparison !== undefined;
  const [first, ...rest] = [
    ...sections("The comparison", () => (page.comparison ? comparison(page.comparison) : [])),
    ...sections("The servers", () => (page.servers ? servers(page.servers) : [])),
    ...sections("The layers", () => (page.layers ? layers(page.layers) : [])),
  ];
  // A comparison has these parts for its second side only.
  const ofSecond = <T extends HTMLElement | null>(element: T): T => (compared ? sided(element) : element);
  const whereTimeWent = ofSecond(part("The ledger", () => ledger(page)));
  const whatWasFound = ofSecond(part("The findings", () => findings(page, open)));
  // The tables are the result of a check.
  const isCheck = page.head.kind === "check";
  return [
    head(page.head),
    isCheck ? null : whatWasFound,
    sections("The inside", () => insides(page)),
    sections("The tables", () => tables(page.tables ?? [])),
    isCheck ? whatWasFound : null,
    part("The search", () => (page.search ? search(page.search) : null)),
    part("The experiments", () => (page.factors ? factors(page.factors) : null)),
    first,
    compared ? rest : null,
    drawnWithFirst(page) ? null : ofSecond(part("The trials", () => trials(page, (index) => open?.(index)))),
    ofSecond(shown ? shown.element : (wire as HTMLElement | null)),
    compared ? null : rest,
    // The ledger precedes the loads where there are calls, and follows them in a run that is only a load.
    shown ? whereTimeWent : null,
    page.loads.flatMap((one, number) => sections("A load", () => load(one, number, page.loads.length > 1))),
    shown ? null : whereTimeWent,
    sections("The set-up", () => setup(page)),
  ];
}

/** Whether the comparison already shows every trial beside those of the first side. */
function drawnWithFirst(page: Page): boolean {
  const drawn = page.comparison?.rows.filter((row) => row.second_s.length).length ?? 0;
  return drawn > 0 && drawn === page.cases.filter((one) => one.trials).length;
}

/** Marks a section as one of the second side. The index has no room for the mark and contains only the title. */
function sided<T extends HTMLElement | null>(element: T): T {
  const title = element?.querySelector("h2");
  if (element && title) {
    indexed(element, title.textContent ?? "");
    title.append(h("small", {}, "of the second side"));
  }
  return element;
}

/** A part of the page. If an unforeseen run makes it fail, a note replaces this part, and the others are drawn. */
function part<T>(name: string, draw: () => T): T | HTMLElement {
  try {
    return draw();
  } catch (problem) {
    return h("p", { class: "banner", role: "note" }, `${name} can't be drawn here (${String(problem)}).`);
  }
}

function sections(name: string, draw: () => HTMLElement[]): HTMLElement[] {
  const drawn = part(name, draw);
  return Array.isArray(drawn) ? drawn : [drawn];
}

/** The head of a run: its kind, its time, its machine and its verdict. */
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

/** A time stamp without its seconds and time zone. */
export function when(started: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)/.exec(started);
  return match ? `${match[1]} ${match[2]}` : started;
}
