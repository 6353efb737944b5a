// A bisection: every tested release with its verdict, in the order of the releases.

import { horizontal } from "./axis";
import { h, section } from "./dom";
import { panel } from "./matrix";
import type { ProbeShown, SearchShown } from "./page.gen";
import { duration } from "./quantities";
import { covering } from "./scale";
import { strip } from "./strip";

/** The section with the bisection. */
export function search(told: SearchShown): HTMLElement {
  const scale = covering(told.probes.flatMap((probe) => probe.medians_s.flatMap((value) => value ?? [])));
  const ordered = told.ordered.flatMap((number) =>
    told.probes[number] ? [{ probe: told.probes[number] as ProbeShown, number }] : [],
  );
  const drawn = told.operations.map((operation, column) =>
    panel(
      operation,
      ordered.map(({ probe }) => {
        const value = probe.medians_s[column];
        const tone = probe.verdict === "bad" ? "much-slower" : "same";
        return {
          who: probe.version,
          tone,
          plot:
            typeof value === "number"
              ? strip({ values: [], median: value, tone, cold: false, name: "median" }, scale)
              : h("p", { class: "absent" }, probe.verdict),
          figure: typeof value === "number" ? duration(value) : "",
        };
      }),
      horizontal(scale, undefined, 3),
    ),
  );
  return section(
    "search",
    "The search",
    h("p", { class: "lead" }, told.words),
    h(
      "ol",
      { class: "releases" },
      ordered.map(({ probe, number }) =>
        h(
          "li",
          { class: probe.verdict, "data-tip": [probe.verdict, probe.note].filter(Boolean).join(": ") },
          h("b", {}, probe.version),
          h("span", {}, probe.verdict),
          h("small", {}, number < 2 ? "an end" : `step ${number - 1}`),
        ),
      ),
    ),
    drawn.length ? h("div", { class: "band" }, h("div", { class: "panels" }, drawn)) : null,
    h(
      "ul",
      { class: "plain" },
      ordered
        .filter(({ probe }) => probe.note)
        .map(({ probe }) => h("li", {}, h("b", {}, probe.version), ` ${probe.verdict}: ${probe.note}`)),
    ),
  );
}
