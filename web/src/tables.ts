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
          figures(one, one.columns).map((name, column) =>
            h("th", { scope: "col", class: column ? "figure" : "" }, name),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        one.rows.flatMap((cells, row) => rows(one, cells, row)),
      ),
    ),
  );
}

/** A row of figures, and its remark in a row below: a narrow screen has no room for a column of words. */
function rows(one: TableShown, cells: readonly string[], row: number): HTMLElement[] {
  const [name = "", ...shown] = figures(one, cells);
  const remark = one.has_remarks ? cells[one.columns.length - 1] : "";
  const made = [
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      shown.map((cell, column) => h("td", { class: "figure" }, cell, bar(one, row, column + 1))),
    ),
  ];
  if (remark) {
    const words = h("div", { class: "words" }, remark);
    made.push(h("tr", { class: "below" }, h("td", { colspan: figures(one, one.columns).length }, words)));
  }
  return made;
}

/** The cells without the remark. */
function figures(one: TableShown, cells: readonly string[]): readonly string[] {
  return one.has_remarks ? cells.slice(0, one.columns.length - 1) : cells;
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
