// A load: its figures, time series, latencies, operations and thresholds.

import { distributions, together } from "./distribution";
import { h, indexed, section, type Child } from "./dom";
import type { LoadShown, OperationShown, Percentiles } from "./page.gen";
import { amount, duration } from "./quantities";
import { series } from "./series";

/** The sections of one load. */
export function load(one: LoadShown, number: number, many: boolean): HTMLElement[] {
  const id = (name: string): string => (many ? `${name}-${number + 1}` : name);
  const title = (words: string): string => (many ? `${words}: ${one.target}` : words);
  const named = one.operations.filter((each) => each.distribution && !each.apart);
  const whole = together(named.flatMap((each) => each.distribution ?? []));
  const told = named.map((each) => ({ name: each.name, distribution: each.distribution!, latency: each.latency }));
  if (whole && named.length > 1) told.unshift({ name: "all calls", distribution: whole, latency: one.latency });
  const latency = distributions(told, id("distribution"), title("Latency"));
  const sections = [
    section(
      id("load"),
      title("Load"),
      h("p", { class: "lead" }, one.model, one.limit ? h("b", { class: "warned" }, ` ${one.limit}`) : null),
      tiles(one),
      thresholds(one),
    ),
    ...(one.series ? [section(id("course"), title("Over time"), series(one.series))] : []),
    ...(latency ? [latency] : []),
    section(id("operations"), title("Operations"), operations(one.operations), facts(one)),
  ];
  // Each of several loads is one entry in the index.
  return many ? sections.map((each, index) => indexed(each, index ? "" : `Load ${number + 1}`)) : sections;
}

function tiles(one: LoadShown): HTMLElement {
  const told: [string, Child, string?][] = [
    ["calls/s", amount(Math.round(one.rate))],
    ["p50", one.latency ? duration(one.latency.p50) : "–"],
    ["p90", one.latency ? duration(one.latency.p90) : "–"],
    ["p99", one.latency ? duration(one.latency.p99) : "–"],
    ["max", one.latency ? duration(one.latency.max) : "–"],
    [
      "failed",
      one.failed ? [amount(one.failed), h("small", {}, ` ${one.failed_share}`)] : "0",
      one.failed ? "bad" : "",
    ],
  ];
  return h(
    "dl",
    { class: "tiles" },
    told.map(([name, value, kind]) => h("div", { class: kind || null }, h("dt", {}, name), h("dd", {}, value))),
  );
}

function thresholds(one: LoadShown): HTMLElement | null {
  if (!one.thresholds.length) return null;
  return h(
    "ul",
    { class: "thresholds" },
    one.thresholds.map((limit) =>
      h(
        "li",
        { class: limit.met ? "met" : "missed" },
        h("b", {}, limit.met ? "met" : "missed"),
        h("code", {}, limit.text),
        limit.words,
      ),
    ),
  );
}

function facts(one: LoadShown): HTMLElement {
  return h(
    "dl",
    { class: "facts-list" },
    one.facts.map((fact) => [h("dt", {}, fact.name), h("dd", {}, fact.value)]),
  );
}

const COLUMNS = ["calls/s", "good", "failed", "mean", "p50", "p90", "p99", "p99.9", "max", "p99, sent"];

/** A table of operations, one row each. Operations other than calls are marked. */
export function operations(all: readonly OperationShown[]): HTMLElement {
  return h(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": "Operations" },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "operation"),
          COLUMNS.map((name) => h("th", { scope: "col", class: "figure" }, name)),
        ),
      ),
      h(
        "tbody",
        {},
        all.map((one) => [
          h(
            "tr",
            { class: one.apart ? "apart" : null },
            h("th", { scope: "row" }, one.name, one.apart ? h("small", {}, " not counted as calls") : null),
            h("td", { class: "figure" }, amount(Number(one.rate.toFixed(1)))),
            h("td", { class: "figure" }, amount(one.good)),
            h("td", { class: one.failed ? "figure bad" : "figure" }, amount(one.failed)),
            percentiles(one.latency).map((value) => h("td", { class: "figure" }, value)),
            h("td", { class: "figure" }, one.sent ? duration(one.sent.p99) : ""),
          ),
          one.errors || one.first_error
            ? h(
                "tr",
                { class: "below" },
                h(
                  "td",
                  { colspan: COLUMNS.length + 1 },
                  one.errors,
                  one.first_error ? h("span", {}, ` – the first: ${one.first_error}`) : null,
                ),
              )
            : null,
        ]),
      ),
    ),
  );
}

function percentiles(told: Percentiles | undefined): string[] {
  if (!told) return ["", "", "", "", "", ""];
  return [told.mean, told.p50, told.p90, told.p99, told.p999, told.max].map(duration);
}
