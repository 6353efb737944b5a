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
          one.columns.map((name, column) => h("th", { scope: "col", class: column ? "figure" : "" }, name)),
        ),
      ),
      h(
        "tbody",
        {},
        one.rows.map(([name = "", ...cells]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, name),
            cells.map((cell) => h("td", { class: "figure" }, cell)),
          ),
        ),
      ),
    ),
  );
}

function notes(one: TableShown): HTMLElement[] {
  return (one.notes ?? []).map((note) => h("p", {}, note));
}
