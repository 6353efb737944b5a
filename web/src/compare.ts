// A comparison of two sides: each figure's ratio with its interval around "no change", and the trials behind it.

import { horizontal } from "./axis";
import { h, legend, s, section } from "./dom";
import { panel } from "./matrix";
import type { ComparedShown, ComparisonShown, FactorsShown } from "./page.gen";
import { times } from "./quantities";
import { covering, logarithmic, type Scale } from "./scale";
import { strip } from "./strip";

const HEIGHT = 22;
const ROUND = [1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000];
/** Separator between the parts of a place. */
const BETWEEN = " · ";
/** Maximum number of panels side by side; more would be too narrow for their axes. */
const PANELS = 4;

/** The sections of a comparison. */
export function comparison(told: ComparisonShown): HTMLElement[] {
  const pairs = told.rows.filter((row) => row.first_s.length && row.second_s.length);
  return [
    section(
      "compared",
      "First against second",
      told.warnings.map((warning) => h("p", { class: "banner", role: "note" }, warning)),
      h(
        "dl",
        { class: "facts-list" },
        h("dt", {}, "First"),
        h("dd", {}, told.first),
        h("dt", {}, "Second"),
        h("dd", {}, told.second),
      ),
      ratios(told.rows, ["first", "second", "second over first", "ratio, 95 %"]),
      h(
        "ul",
        { class: "plain" },
        told.notes.map((note) => h("li", {}, note)),
      ),
    ),
    ...(pairs.length
      ? [
          section(
            "both",
            "Every trial of both",
            legend([
              ["key-a", "first"],
              ["key-b", "second"],
              ["key-cold", "cold trial"],
              ["key-baseline", "median of the first"],
            ]),
            grouped(pairs).map(([where, rows]) =>
              h(
                "div",
                { class: "band" },
                h("h3", {}, where),
                rowsOf(rows, PANELS).map((line) =>
                  h(
                    "div",
                    { class: `panels of-${line.length} pairs` },
                    line.map((row) => pair(row, operation(row))),
                  ),
                ),
              ),
            ),
          ),
        ]
      : []),
  ];
}

/** Experiments on a live target: the effect of each change on the time of a call. */
export function factors(told: FactorsShown): HTMLElement {
  return section(
    "factors",
    "One thing changed at a time",
    h("p", { class: "lead" }, told.target),
    ratios(told.rows, ["base", "changed", "changed over base", told.interval]),
    h(
      "ul",
      { class: "plain" },
      told.notes.map((note) => h("li", {}, note)),
    ),
  );
}

/** Ratios on one logarithmic scale. A mark to the right of the line means a greater figure on the second side. */
function ratios(rows: readonly ComparedShown[], names: readonly [string, string, string, string]): HTMLElement | null {
  if (!rows.length) return null;
  const measured = rows.some((row) => row.metric);
  const sees = rows.some((row) => row.sees);
  const columns = (measured ? 4 : 3) + (sees ? 4 : 3);
  const seen = rows
    .flatMap((row) => [row.ratio, row.low, row.high])
    .filter((value): value is number => value !== undefined && value > 0);
  const far = Math.min(Math.max(1.5, ...seen.map((value) => Math.max(value, 1 / value))), 1000);
  const scale = { ...logarithmic(1 / far, far, 1, true), ticks: symmetric(far) };
  return h(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": "Ratios" },
    h(
      "table",
      { class: "ratios" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          (measured ? ["", "figure"] : [""]).map((name) => h("th", { scope: "col" }, name)),
          names.slice(0, 2).map((name) => h("th", { scope: "col", class: "figure" }, name)),
          h("th", { scope: "col", class: "drawn-ratio" }, names[2]),
          (sees ? [names[3], "would see", ""] : [names[3], ""]).map((name) =>
            h("th", { scope: "col", class: "figure" }, name),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row, index) => [
          h(
            "tr",
            {
              class: [
                row.verdict,
                row.verdict === "worse" && !row.breach ? "allowed" : "",
                row.place === rows[index - 1]?.place ? "same-place" : "",
              ].join(" "),
            },
            h("th", { scope: "row" }, row.place),
            measured ? h("td", { class: "metric" }, row.metric) : null,
            // The names of the columns, for narrow screens without columns.
            h("td", { class: "figure first", "data-name": names[0] }, row.first),
            h("td", { class: "figure", "data-name": names[1] }, row.second),
            h("td", { class: "drawn-ratio" }, interval(row, scale)),
            h("td", { class: "figure ratio" }, row.ratio_words),
            sees ? h("td", { class: "figure", "data-name": row.sees ? "would see" : "" }, row.sees) : null,
            h("td", { class: "figure verdict" }, row.words),
          ),
          row.advice ? h("tr", { class: "below" }, h("td", { colspan: columns }, row.advice)) : null,
        ]),
      ),
      h(
        "tfoot",
        {},
        h(
          "tr",
          {},
          h("td", { colspan: measured ? 4 : 3 }),
          h("td", {}, horizontal(scale, times, 5)),
          h("td", { colspan: sees ? 3 : 2 }),
        ),
      ),
    ),
  );
}

/** Ticks on both sides of "no change" at equal distances: a half is as far from it as a double. */
function symmetric(far: number): number[] {
  const [inner, outer] = [far ** 0.4, far ** 0.85].map((wanted) =>
    ROUND.reduce((best, each) => (Math.abs(Math.log(each / wanted)) < Math.abs(Math.log(best / wanted)) ? each : best)),
  );
  return [...new Set([1 / outer!, 1 / inner!, 1, inner!, outer!])];
}

function interval(row: ComparedShown, scale: Scale): SVGSVGElement | null {
  if (row.ratio === undefined || row.ratio <= 0) return null;
  const place = (value: number): string => `${scale.percent(value).toFixed(2)}%`;
  const picture = s("svg", {
    class: `interval ${row.verdict}`,
    height: HEIGHT,
    role: "img",
    "aria-label": row.ratio_words,
    "data-tip": `${row.ratio_words} ${row.words}`,
  });
  picture.append(s("line", { class: "baseline", x1: place(1), x2: place(1), y1: 0, y2: HEIGHT }));
  if (row.low !== undefined && row.high !== undefined) {
    picture.append(
      s("line", { class: "whisker", x1: place(row.low), x2: place(row.high), y1: HEIGHT / 2, y2: HEIGHT / 2 }),
    );
  }
  picture.append(s("circle", { class: "dot", cx: place(row.ratio), cy: HEIGHT / 2, r: 4.5 }));
  return picture;
}

function pair(row: ComparedShown, place: string): HTMLElement {
  const scale = covering([...row.first_s, ...row.second_s]);
  const baseline = row.first_median_s;
  return panel(
    place,
    (
      [
        ["first", row.first_s, row.first_median_s, row.first, "side-a"],
        ["second", row.second_s, row.second_median_s, row.second, "side-b"],
      ] as const
    ).map(([who, values, median, figure, tone]) => ({
      who,
      plot: strip({ values, median, baseline, tone, cold: true, name: "trial" }, scale),
      figure,
    })),
    horizontal(scale, undefined, 5),
  );
}

/** Groups the rows by subject and target, keeping their order. */
function grouped(rows: readonly ComparedShown[]): [string, ComparedShown[]][] {
  const groups = new Map<string, ComparedShown[]>();
  for (const row of rows) {
    const where = row.place.split(BETWEEN).slice(0, -1).join(BETWEEN);
    groups.set(where, [...(groups.get(where) ?? []), row]);
  }
  return [...groups];
}

function operation(row: ComparedShown): string {
  return row.place.split(BETWEEN).at(-1) ?? "";
}

/** Divides a list into lines of nearly equal length, with at most `most` entries each. */
function rowsOf<T>(all: readonly T[], most: number): T[][] {
  const lines = Math.ceil(all.length / most);
  const each = Math.ceil(all.length / lines);
  return Array.from({ length: lines }, (_, line) => all.slice(line * each, (line + 1) * each));
}
