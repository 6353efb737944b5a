// Cases as small multiples: a band for each target, a panel for each operation, a row for each subject. The panels of a
// band share one scale.

import { h, type Child } from "./dom";
import type { CaseShown, Page } from "./page.gen";

export interface Band {
  readonly target: string;
  readonly panels: readonly Panel[];
}

export interface Panel {
  readonly title: string;
  readonly cases: readonly CaseShown[];
}

const LIFE = ["provider", "connect", "list", "call", "disconnect"];

const DIFFERENT = ["much-slower", "much-faster"];

/** The cases that `wanted` accepts, by target and operation. Targets with a difference come first. */
export function bands(page: Page, wanted: (one: CaseShown) => boolean): Band[] {
  const targets = [...new Set(page.cases.map((one) => one.target))];
  return targets
    .map((target) => ({ target, panels: panels(page.cases.filter((one) => one.target === target && wanted(one))) }))
    .filter((band) => band.panels.length > 0)
    .sort((first, second) => Number(isDifferent(second)) - Number(isDifferent(first)));
}

function isDifferent(band: Band): boolean {
  return band.panels.some((panel) => panel.cases.some((one) => DIFFERENT.includes(one.tone)));
}

function panels(cases: readonly CaseShown[]): Panel[] {
  const operations = [...new Set(cases.map((one) => one.operation))].sort((a, b) => order(a) - order(b));
  return operations.map((operation) => {
    const own = cases.filter((one) => one.operation === operation);
    const tool = own.find((one) => one.tool)?.tool;
    return { title: tool ? `${operation} ${tool}` : operation, cases: own };
  });
}

function order(operation: string): number {
  const place = LIFE.indexOf(operation);
  return place < 0 ? LIFE.length : place;
}

export interface Row {
  readonly who: string;
  readonly plot: Child;
  readonly figure: Child;
  readonly note?: Child;
  readonly tone?: string;
  readonly tip?: string;
}

/** A panel: its title, its rows and its axis, from top to bottom. */
export function panel(title: Child, rows: readonly Row[], axis: Child): HTMLElement {
  return h(
    "div",
    { class: "panel" },
    h("h4", {}, title),
    rows.map((row) =>
      h(
        "div",
        { class: `row ${row.tone ?? ""}` },
        h("div", { class: "who", "data-tip": row.tip ?? row.who }, row.who),
        h("div", { class: "plot" }, row.plot),
        h("div", { class: "value" }, row.figure, row.note ? h("small", {}, row.note) : null),
      ),
    ),
    axis
      ? h(
          "div",
          { class: "row foot" },
          h("div", { class: "who" }),
          h("div", { class: "plot" }, axis),
          h("div", { class: "value" }),
        )
      : null,
  );
}

/** A band: its target above its panels, which are side by side where there is room. */
export function band(target: string, drawn: readonly HTMLElement[], remark = ""): HTMLElement {
  return h(
    "div",
    { class: "band" },
    h("h3", {}, target, remark ? h("small", {}, remark) : null),
    h("div", { class: `panels of-${Math.min(drawn.length, 5)}` }, drawn),
  );
}
