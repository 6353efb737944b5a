// A run in progress: its current step, and the figures measured so far.

import { horizontal } from "./axis";
import { h, section, type Child } from "./dom";
import { panel } from "./matrix";
import type { Live, Sample, Series } from "./page.gen";
import { amount, duration } from "./quantities";
import { when } from "./run";
import { covering } from "./scale";
import { series } from "./series";
import { strip } from "./strip";

/** The view of a run in progress, which is drawn anew after each request. */
export function live(told: Live): Child[] {
  const groups = [...new Set(told.samples.map((one) => one.group))];
  return [
    h(
      "header",
      { class: "head" },
      h(
        "p",
        { class: "facts" },
        h("span", { class: "tag" }, told.head.kind),
        h("time", {}, when(told.head.started)),
        h("span", {}, `mcpace ${told.head.mcpace}`),
        h("span", {}, told.head.machine),
      ),
      told.ended
        ? h(
            "p",
            { class: "banner", role: "note" },
            "The program that measured is gone and has saved nothing: this is what it had until then.",
          )
        : null,
      h(
        "h1",
        { class: "now" },
        told.ended ? null : h("span", { class: "pulse" }),
        [told.head.subjects, told.step || "beginning"].filter(Boolean).join(": "),
      ),
      progress(told),
    ),
    told.series ? section("course", "Over time", now(told.series), series(told.series, told.planned_s)) : null,
    groups.length
      ? section(
          "samples",
          "Measured so far",
          h(
            "div",
            { class: `panels of-${Math.min(groups.length, 3)}` },
            groups.map((group) =>
              samples(
                group,
                told.samples.filter((one) => one.group === group),
              ),
            ),
          ),
        )
      : null,
    told.notes.length
      ? section(
          "notes",
          "Notes",
          h(
            "ul",
            { class: "plain" },
            told.notes.map((note) => h("li", {}, note)),
          ),
        )
      : null,
  ];
}

/** The figures of the newest second. */
function now(told: Series): HTMLElement {
  const [p50, p99] = [told.p50_s.at(-1), told.p99_s.at(-1)];
  const failed = told.errors.reduce((sum, count) => sum + count, 0);
  const figures: [string, string, string?][] = [
    ["calls/s now", amount(Math.round(told.ok.at(-1) ?? 0))],
    ["p50 now", typeof p50 === "number" ? duration(p50) : "–"],
    ["p99 now", typeof p99 === "number" ? duration(p99) : "–"],
    ["users", amount(told.users.at(-1) ?? 0)],
    ["failed so far", amount(failed), failed ? "bad" : ""],
  ];
  return h(
    "dl",
    { class: "tiles" },
    figures.map(([name, value, kind]) => h("div", { class: kind || null }, h("dt", {}, name), h("dd", {}, value))),
  );
}

function progress(told: Live): HTMLElement | null {
  const reached = told.series?.at_s.at(-1);
  const [done, of] = told.planned_s
    ? [reached === undefined ? 0 : reached + 1, told.planned_s]
    : [told.done, told.steps ?? 0];
  if (!of) return null;
  const words = told.planned_s ? `${amount(Math.min(done, of))} of ${amount(of)} s` : `step ${done} of ${of}`;
  return h(
    "p",
    { class: "progress" },
    h("progress", { max: of, value: Math.min(done, of), "aria-label": words }),
    words,
  );
}

function samples(group: string, all: readonly Sample[]): HTMLElement {
  const words = all[0]?.unit === "s" ? duration : (value: number): string => `${amount(Math.round(value))}/s`;
  const scale = covering(all.flatMap((one) => one.values));
  return panel(
    group,
    all.map((one) => ({
      who: one.row,
      plot: strip({ values: one.values, tone: "same", cold: one.unit === "s", name: "trial", words }, scale),
      figure: one.values.length ? words(one.values.at(-1) ?? 0) : "",
    })),
    horizontal(scale, all[0]?.unit === "s" ? undefined : amount),
  );
}
