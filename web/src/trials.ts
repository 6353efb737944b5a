// Every trial as a dot, cold and warm, with the subjects below each other.

import { horizontal } from "./axis";
import { h, legend, section, type Child } from "./dom";
import { band, bands, panel, type Band, type Panel, type Row } from "./matrix";
import type { CaseShown, Page } from "./page.gen";
import { duration, tick } from "./quantities";
import { roving } from "./roving";
import { covering, type Scale } from "./scale";
import { strip } from "./strip";

/** The section with the trials. `open` shows the call of a case. */
export function trials(page: Page, open: (index: number) => void): HTMLElement | null {
  const found = bands(page, (one) => one.trials > 0 || one.state !== "");
  if (!found.length) return null;
  const compares = page.subjects.length > 1;
  const view = new View(page, open);
  const key: [string, string][] = [
    ["key-cold", "cold (first) trial"],
    ["key-warm", "warm trial"],
    ["key-median", "warm median"],
  ];
  if (compares)
    key.push(["key-baseline", "median of the first subject"], ["key-slow", "slower than the first subject"]);
  return section(
    "trials",
    "Every trial",
    legend(key),
    found.map((one) => view.band(one)),
    figures(page),
  );
}

class View {
  constructor(
    private readonly page: Page,
    private readonly open: (index: number) => void,
  ) {}

  band(one: Band): HTMLElement {
    const alone = one.panels.every((each) => each.cases.length === 1);
    const own = one.panels.map((each) => covering(each.cases.flatMap((shown) => shown.trials_s)));
    const scale = alone
      ? covering(one.panels.flatMap((each) => each.cases.flatMap((shown) => shown.trials_s)))
      : own[0]!;
    const every = one.panels.some((each) => each.cases.some((shown) => shown.trials > shown.trials_s.length));
    const drawn = alone
      ? [this.alone(one, scale)]
      : one.panels.map((each, index) => this.panel(each, own[index]!, one.panels.length > 3 ? 3 : 4));
    return band(
      one.target,
      drawn.map((each) => roving(each, "button.link")),
      every ? "not every trial is drawn" : "",
    );
  }

  /** The panel of a single subject, whose rows are the operations. */
  private alone(one: Band, scale: Scale): HTMLElement {
    const rows = one.panels.map((each) => this.row(each.cases[0] as CaseShown, undefined, scale, each.title));
    return panel([one.panels[0]?.cases[0]?.subject ?? "", logarithmic(scale)], rows, horizontal(scale));
  }

  private panel(each: Panel, scale: Scale, labels: number): HTMLElement {
    const baseline = each.cases[0]?.summary?.median_s;
    const rows = each.cases.map((shown) => this.row(shown, baseline, scale, shown.subject));
    return panel(
      [each.title, logarithmic(scale)],
      rows,
      each.cases.some((shown) => shown.trials) ? horizontal(scale, tick, labels) : null,
    );
  }

  private row(shown: CaseShown, baseline: number | undefined, scale: Scale, who: string): Row {
    const words = [shown.change, shown.state, shown.reason].filter(Boolean).join("; ");
    const drawn = shown.trials
      ? strip(
          {
            values: shown.trials_s,
            median: shown.summary?.median_s,
            baseline,
            tone: shown.tone,
            cold: true,
            name: "trial",
          },
          scale,
        )
      : h("p", { class: "absent", "data-tip": words }, shown.reason ? `${shown.state}: ${shown.reason}` : shown.state);
    return {
      who,
      plot: drawn,
      figure: this.figure(shown),
      note: shown.note || (shown.trials ? shown.state : ""),
      tone: shown.tone,
      tip: words ? `${who}: ${words}` : who,
    };
  }

  private figure(shown: CaseShown): Child {
    if (!shown.summary) return "";
    const text = duration(shown.summary.median_s);
    if (!shown.call) return text;
    const index = this.page.cases.indexOf(shown);
    const tip = `Show this ${shown.operation} on the wire`;
    return h("button", { type: "button", class: "link", "data-tip": tip, onclick: () => this.open(index) }, text);
  }
}

function logarithmic(scale: Scale): Child {
  return scale.logarithmic ? h("small", { "data-tip": "Equal widths are equal ratios" }, "log") : null;
}

/** All figures as a table, for reading and copying. */
function figures(page: Page): HTMLElement {
  const columns = ["cold", "median", "mean", "fastest", "slowest"];
  const rows = page.cases.filter((one) => one.trials || one.state);
  return h(
    "details",
    {},
    h("summary", {}, "All figures as a table"),
    h(
      "div",
      { class: "wide", tabindex: 0, role: "region", "aria-label": "All figures" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["target", "operation", "subject"].map((name) => h("th", { scope: "col" }, name)),
            columns.map((name) => h("th", { scope: "col", class: "figure" }, name)),
            h("th", { scope: "col" }, "against the first"),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((one) => {
            const told = one.summary;
            const values = told
              ? [told.first_s, told.median_s, told.mean_s, told.min_s, told.max_s]
              : columns.map(() => null);
            return h(
              "tr",
              {},
              h("td", {}, one.target),
              h("td", {}, one.tool ? `${one.operation} ${one.tool}` : one.operation),
              h("th", { scope: "row" }, one.subject),
              values.map((value) => h("td", { class: "figure" }, value === null ? "" : duration(value))),
              h("td", {}, [one.change, one.state, one.reason].filter(Boolean).join("; ")),
            );
          }),
        ),
      ),
    ),
  );
}
