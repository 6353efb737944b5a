// The time inside a tool: its parts, the lines of the server's own code, and a flame graph.

import { h, s, section } from "./dom";
import { flame } from "./flame";
import { rect } from "./ledger";
import type { Page, TimeRowShown } from "./page.gen";
import { duration } from "./quantities";

/** One section for each tool that was looked into. */
export function insides(page: Page): HTMLElement[] {
  return page.inside.map((told, number) =>
    section(
      number ? `inside-${number + 1}` : "inside",
      told.title,
      h("p", { class: "lead" }, told.where),
      told.notes.map((note) => h("p", { class: "warned" }, note)),
      told.about.map((sentence) => h("p", { class: "lead" }, sentence)),
      h(
        "div",
        { class: told.lines.length ? "beside" : "" },
        times(told.parts_title, told.parts, told.whole_s),
        times("By line of the server's code, running or waiting there", told.lines, told.whole_s),
      ),
      told.flame ? flame(told.flame, told.whole_s, told.title) : null,
    ),
  );
}

function times(title: string, rows: readonly TimeRowShown[], whole_s: number): HTMLElement | null {
  if (!rows.length) return null;
  return h(
    "div",
    {},
    h("h4", {}, title),
    h(
      "table",
      { class: "times", "aria-label": title },
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            {},
            h("td", { class: "figure" }, duration(row.time_s)),
            h("td", { class: "figure" }, row.share),
            h("th", { scope: "row" }, row.words, meter(row, whole_s)),
          ),
        ),
      ),
    ),
  );
}

/** A thin bar of the row's share. */
function meter(row: TimeRowShown, whole_s: number): SVGSVGElement {
  const width = whole_s > 0 ? Math.min((100 * row.time_s) / whole_s, 100) : 0;
  const picture = s("svg", { height: 5, "aria-hidden": "true" });
  picture.append(rect(0, 100, 1, 4, "meter"), rect(0, width, 1, 4, `meter b-${row.kind}`));
  return picture;
}
