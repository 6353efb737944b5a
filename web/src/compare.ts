// Two runs side by side: the same case's trials on one scale, distributions as curves, figures beside each other.

import { horizontal } from "./axis";
import { curves, type Told } from "./distribution";
import { h, legend, section, type Child } from "./dom";
import { panel } from "./matrix";
import type { Compared, Comparison, Head } from "./page.gen";
import { duration } from "./quantities";
import { when } from "./run";
import { covering } from "./scale";
import { strip } from "./strip";

/** The view. */
export function compare(told: Comparison): Child[] {
  const [verdict = "", ...more] = told.sentences;
  const targets = [...new Set(told.rows.map((row) => row.target))];
  return [
    h(
      "header",
      { class: "head" },
      h("p", { class: "facts" }, h("span", { class: "tag" }, "two runs")),
      h("h1", {}, verdict),
      more.length ? h("p", { class: "more-verdict" }, more.join(" ")) : null,
      told.warnings.map((warning) => h("p", { class: "banner", role: "note" }, warning)),
      h("div", { class: "two-heads" }, side("A", told.first), side("B", told.second)),
    ),
    told.rows.length
      ? section(
          "compared",
          "What both have",
          legend([["key-a", "A"], ["key-b", "B"], ["key-cold", "cold trial"], ["key-median", "median"]]),
          targets.map((target) =>
            h("div", { class: "band" }, h("h3", {}, target), h("div", { class: "panels of-3" }, told.rows.filter((row) => row.target === target).map(pair))),
          ),
        )
      : null,
    told.only_first.length || told.only_second.length
      ? section("apart", "In one of them only", only("A", told.only_first), only("B", told.only_second))
      : null,
  ];
}

function side(name: string, head: Head): HTMLElement {
  return h("div", {}, h("p", { class: "facts" }, h("b", { class: `key-${name.toLowerCase()}` }, name), h("span", { class: "tag" }, head.kind), h("time", {}, when(head.started)), h("span", {}, `mcpace ${head.mcpace}`), h("span", {}, head.machine)), h("p", {}, head.verdict[0] ?? ""));
}

function pair(row: Compared): HTMLElement {
  const title = [row.operation, h("small", {}, row.first === row.second ? row.first : `${row.first} against ${row.second}`)];
  const scale = covering([...row.first_s, ...row.second_s]);
  const drawn = row.first_s.length && row.second_s.length
    ? panel(
        title,
        [
          ["A", row.first_s, row.first_median_s, "side-a"],
          ["B", row.second_s, row.second_median_s, "side-b"],
        ].map(([name, values, median, tone]) => ({
          who: name as string,
          plot: strip({ values: values as number[], median: median as number | undefined, baseline: row.first_median_s, tone: tone as string, cold: true, name: "trial" }, scale),
          figure: typeof median === "number" ? duration(median) : "",
        })),
        horizontal(scale),
      )
    : h("div", { class: "panel" }, h("h4", {}, title));
  if (row.figures.length) drawn.append(figures(row));
  const told: Told[] = [["A", row.first_distribution], ["B", row.second_distribution]].flatMap(([name, distribution]) =>
    typeof distribution === "object" ? [{ name: name as string, distribution }] : [],
  );
  if (told.length === 2) drawn.append(curves(told));
  if (row.words) drawn.append(h("p", { class: `said ${row.tone}` }, row.words));
  for (const [name, codes] of [["A", row.first_codes], ["B", row.second_codes]] as const) {
    if (codes.length) drawn.append(h("p", { class: "said" }, `Only in ${name}: ${codes.join(", ")}.`));
  }
  return drawn;
}

function figures(row: Compared): HTMLElement {
  return h(
    "table",
    { class: "small" },
    h("thead", {}, h("tr", {}, h("th", {}), h("th", { scope: "col", class: "figure" }, "A"), h("th", { scope: "col", class: "figure" }, "B"))),
    h("tbody", {}, row.figures.map(([name, first, second]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "figure" }, first), h("td", { class: "figure" }, second)))),
  );
}

function only(name: string, cases: readonly string[]): HTMLElement | null {
  return cases.length ? h("div", {}, h("h3", {}, name), h("ul", { class: "plain" }, cases.map((one) => h("li", {}, one)))) : null;
}
