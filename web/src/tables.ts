// Small tables of text: the waits of a session, the requests of a recorded client.

import { h, section } from "./dom";
import type { TableShown } from "./page.gen";

/** One section for each table. */
export function tables(found: readonly TableShown[]): HTMLElement[] {
  return found.map((one, number) => section(`table-${number}`, one.title, lead(one), drawn(one), notes(one)));
}

function lead(one: TableShown): HTMLElement | null {
  return one.where ? h("p", { class: "lead" }, one.where) : null;
}

function drawn(one: TableShown): HTMLElement {
  return h(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": one.title },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          one.columns.map((name, column) => h("th", { scope: "col", class: style(one, column) }, name)),
        ),
      ),
      h(
        "tbody",
        {},
        one.rows.map(([name = "", ...cells], row) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, name),
            cells.map((cell, column) => h("td", { class: style(one, column + 1) }, cell, bar(one, row, column + 1))),
          ),
        ),
      ),
    ),
  );
}

function style(one: TableShown, column: number): string {
  if (one.has_remarks && column === one.columns.length - 1) {
    return "remark";
  }
  return column ? "figure" : "";
}

/** A bar below a figure, for the eye: the figure itself is the text. */
function bar(one: TableShown, row: number, column: number): HTMLElement | null {
  const length = one.bars[row];
  if (column !== one.bar_column || length === undefined) {
    return null;
  }
  const drawn = h("span", { class: "bar", "aria-hidden": "true" });
  drawn.style.width = `${(100 * length).toFixed(1)}%`;
  return drawn;
}

function notes(one: TableShown): HTMLElement[] {
  return (one.notes ?? []).map((note) => h("p", {}, note));
}
