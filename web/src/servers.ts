// Servers under the same load: rounds as dots, latencies from p50 to p99.9, and all figures as a table.

import { horizontal } from "./axis";
import { curves, distributions, together, type Told } from "./distribution";
import { choice, h, legend, s, section } from "./dom";
import { panel } from "./matrix";
import type { OperationShown, ServerShown, ServersShown } from "./page.gen";
import { amount, duration, size } from "./quantities";
import { covering, type Scale } from "./scale";
import { strip } from "./strip";

/** The sections of a comparison of servers. */
export function servers(told: ServersShown): HTMLElement[] {
  return [rates(told), latency(told), tools(told), ran(told)].flatMap((one) => one ?? []);
}

function rates(told: ServersShown): HTMLElement {
  const body = h("div", { class: "drawn" });
  const best = (one: ServerShown): number => (told.open ? -(one.latency?.p99 ?? Infinity) : (one.rate ?? -1));
  const draw = (sorted: boolean): void => {
    const all = sorted ? [...told.servers].sort((a, b) => best(b) - best(a)) : [...told.servers];
    body.replaceChildren(
      h("div", { class: "panels of-2 long-names" }, throughput(all, told.floor), spans(all, told.floor)),
      table(all, told.floor),
    );
  };
  draw(false);
  return section(
    "servers",
    `Workload ${told.workload}`,
    h(
      "div",
      { class: "controls" },
      choice("Order", ["as named", told.open ? "quickest first" : "most first"], 0, (index) => draw(index === 1)),
      legend([
        ["key-warm", "a round"],
        ["key-median", "all rounds"],
        ["key-baseline", "a server that does nothing"],
      ]),
    ),
    body,
  );
}

function throughput(all: readonly ServerShown[], floor: ServerShown | undefined): HTMLElement {
  const rounds = all.flatMap((one) => [...one.rounds.map((round) => round.rate), one.rate ?? 0]);
  const scale = covering(rounds);
  const within = floor?.rate !== undefined && floor.rate <= Math.max(...rounds) * 1.02 ? floor.rate : undefined;
  const words = (value: number): string => `${amount(Math.round(value))}/s`;
  const rows = all.map((one) => ({
    who: one.name,
    plot:
      one.rate === undefined
        ? h("p", { class: "absent", "data-tip": one.remarks.join("; ") }, one.remarks.join("; "))
        : strip(
            {
              values: one.rounds.map((round) => round.rate),
              median: one.rate,
              baseline: within,
              tone: one.failed ? "much-slower" : "same",
              cold: false,
              name: "round",
              words,
            },
            scale,
          ),
    figure: one.rate === undefined ? "" : words(one.rate),
    note: one.ratio.split(" ")[0] ?? "",
    tip: [one.name, ...one.remarks].join("; "),
  }));
  return panel(
    ["calls a second, each round a dot", scale.logarithmic ? h("small", {}, "log") : null],
    rows,
    horizontal(scale, amount),
  );
}

/** Latencies as lines from p50 to p99.9, with marks at p90 and p99. */
function spans(all: readonly ServerShown[], floor: ServerShown | undefined): HTMLElement {
  const rows = floor ? [...all, floor] : all;
  const timed = rows.flatMap((one) => (one.latency ? [one.latency.p50, one.latency.p999] : []));
  const scale = covering(timed);
  return panel(
    "latency: p50 • p90 • p99 — p99.9",
    rows.map((one) => ({
      who: one.name,
      plot: one.latency ? span(one, scale) : "",
      figure: one.latency ? duration(one.latency.p50) : "",
      note: one.latency ? `p99 ${duration(one.latency.p99)}` : "",
    })),
    horizontal(scale),
  );
}

function span(one: ServerShown, scale: Scale): SVGSVGElement {
  const told = one.latency!;
  const points = [
    ["p50", told.p50],
    ["p90", told.p90],
    ["p99", told.p99],
    ["p99.9", told.p999],
  ] as const;
  const said = points.map(([name, value]) => `${name} ${duration(value)}`).join(", ");
  const place = (value: number): string => `${scale.percent(value).toFixed(2)}%`;
  const picture = s("svg", {
    class: "strip",
    height: 26,
    role: "img",
    "aria-label": said,
    "data-tip": `${one.name}: ${said}`,
  });
  for (const value of scale.ticks)
    picture.append(s("line", { class: "grid", x1: place(value), x2: place(value), y1: 0, y2: 26 }));
  picture.append(s("line", { class: "span", x1: place(told.p50), x2: place(told.p999), y1: 13, y2: 13 }));
  points.forEach(([name, value], index) => {
    picture.append(
      s("circle", {
        class: `on-span s${index}`,
        cx: place(value),
        cy: 13,
        r: [5, 3.6, 3.6, 2.6][index] ?? 3,
        "data-tip": `${one.name}: ${name} ${duration(value)}`,
      }),
    );
  });
  return picture;
}

const COLUMNS = ["calls/s", "against the first", "p50", "p90", "p99", "p99.9", "failed", "CPU/call", "memory"];

function table(all: readonly ServerShown[], floor: ServerShown | undefined): HTMLElement {
  return grid(
    "All figures",
    COLUMNS,
    (floor ? [...all, floor] : all).map((one) => ({
      name: one.name,
      remark: one.remarks.join("; "),
      figures:
        one.rate === undefined
          ? []
          : [
              amount(Math.round(one.rate)),
              one.ratio,
              ...percentiles(one),
              one.failed ? amount(one.failed) : one === floor ? "" : "0",
              one.cpu_s === undefined ? "" : duration(one.cpu_s),
              one.rss_bytes === undefined ? "" : size(one.rss_bytes),
            ],
    })),
  );
}

function latency(told: ServersShown): HTMLElement | null {
  const all: Told[] = told.servers.flatMap((one) => {
    const whole = together(one.operations.flatMap((each) => each.distribution ?? []));
    return whole ? [{ name: one.name, distribution: whole, latency: one.latency }] : [];
  });
  return distributions(all);
}

function tools(told: ServersShown): HTMLElement | null {
  const names = [...new Set(told.servers.flatMap((one) => one.operations.map((each) => each.name)))];
  if (names.length < 2) return null;
  const columns = ["calls/s", "p50", "p90", "p99", "p99.9", "failed"];
  return section(
    "tools",
    "By tool",
    names.map((name) => {
      const own = told.servers.map((one) => ({ one, tool: one.operations.find((each) => each.name === name) }));
      const drawn: Told[] = own.flatMap(({ one, tool }) =>
        tool?.distribution ? [{ name: one.name, distribution: tool.distribution, latency: tool.latency }] : [],
      );
      return h(
        "div",
        { class: "tool" },
        h("h3", {}, name),
        grid(
          name,
          columns,
          own.map(({ one, tool }) => ({
            name: one.name,
            remark: tool ? (tool.first_error ? `the first that failed: ${tool.first_error}` : "") : "not called",
            figures: tool ? [amount(Math.round(tool.rate)), ...percentiles(tool), amount(tool.failed)] : [],
          })),
        ),
        drawn.length ? h("details", {}, h("summary", {}, "Its latencies by percentile"), curves(drawn)) : null,
      );
    }),
  );
}

function percentiles(one: ServerShown | OperationShown): string[] {
  const told = one.latency;
  return told ? [told.p50, told.p90, told.p99, told.p999].map(duration) : ["", "", "", ""];
}

interface Line {
  readonly name: string;
  readonly figures: readonly string[];
  readonly remark: string;
}

function grid(label: string, columns: readonly string[], rows: readonly Line[]): HTMLElement {
  return h(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": label },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "server"),
          columns.map((name) => h("th", { scope: "col", class: "figure" }, name)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) => [
          h(
            "tr",
            {},
            h("th", { scope: "row" }, row.name),
            row.figures.length
              ? row.figures.map((value) => h("td", { class: "figure" }, value))
              : h("td", { class: "remark", colspan: columns.length }, row.remark),
          ),
          row.remark && row.figures.length
            ? h("tr", { class: "below" }, h("td", { colspan: columns.length + 1 }, row.remark))
            : null,
        ]),
      ),
    ),
  );
}

function ran(told: ServersShown): HTMLElement {
  const programs = told.servers.filter((one) => one.program);
  return section(
    "ran",
    "What ran",
    h(
      "ul",
      { class: "plain" },
      told.conditions.map((sentence) => h("li", {}, sentence)),
    ),
    programs.length
      ? h(
          "details",
          {},
          h("summary", {}, "Every server's program"),
          h(
            "dl",
            { class: "facts-list" },
            programs.map((one) => [h("dt", {}, one.name), h("dd", {}, one.program)]),
          ),
        )
      : null,
  );
}
