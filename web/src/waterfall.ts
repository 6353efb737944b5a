// One call on its time axis: a row for each exchange with its phases, and the events that prove a finding.

import { horizontal } from "./axis";
import { dependencyLane } from "./dependency_lane";
import { at, h, s, type Child } from "./dom";
import { label, named } from "./label";
import { kind, rect } from "./ledger";
import type { Call, CaseShown, ExchangeRow, Page, Pin } from "./page.gen";
import { duration } from "./quantities";
import { roving } from "./roving";
import { linear, type Scale } from "./scale";

/** Length of the axis, in lengths of the call. A reply that stays open longer is cut off. */
const BEYOND = 1.06;
const ROW = 18;
const NARROWEST = 0.25;
/** Minimum distance of two pins on one level, in percent. */
const APART = 3.2;
const SHOWN_ROWS = 16;

export interface Options {
  /** End of the axis, where it is determined by another call. */
  readonly end_ms?: number | undefined;
  /** Index of the finding whose evidence is marked. */
  readonly finding?: number | undefined;
}

/** The drawing of a case's call. */
export function waterfall(page: Page, shown: CaseShown, call: Call, options: Options): HTMLElement {
  return new Drawing(page, shown, call, options).card();
}

class Drawing {
  private readonly end_ms: number;
  private readonly scale: Scale;
  private readonly phases: ReadonlyMap<string, string>;

  constructor(
    page: Page,
    private readonly shown: CaseShown,
    private readonly call: Call,
    private readonly options: Options,
  ) {
    this.end_ms = Math.max(options.end_ms ?? call.total_ms, 1e-6) * BEYOND;
    this.scale = linear(this.end_ms / 1000, 0, 6);
    this.phases = new Map(page.phases.map((phase) => [phase.key, phase.words]));
  }

  card(): HTMLElement {
    const { shown, call } = this;
    const rows = call.exchanges.map((exchange, index) => this.row(exchange, index));
    const lanes = h(
      "div",
      { class: "lanes" },
      this.pins(),
      h(
        "div",
        { class: "over" },
        at(h("div", { class: "returns", "aria-hidden": "true" }), this.percent(call.total_ms)),
      ),
      this.span(),
      rows,
      call.lanes.map((lane) => dependencyLane(lane, this.scale, (from_ms, to_ms) => this.place(from_ms, to_ms))),
    );
    roving(lanes, ".lane:not(.whole-lane) svg");
    const hidden = rows.slice(SHOWN_ROWS);
    hidden.forEach((row) => row.classList.add("folded"));
    const more = h(
      "button",
      {
        type: "button",
        class: "more",
        onclick: () => (hidden.forEach((row) => row.classList.remove("folded")), more.remove()),
      },
      `Show ${hidden.length} more rows`,
    );
    const name = shown.tool ? `${shown.operation} ${shown.tool}` : shown.operation;
    return h(
      "figure",
      { class: `call ${shown.tone}` },
      h(
        "figcaption",
        {},
        h("b", {}, shown.subject),
        h("span", {}, `${name} at ${shown.target}, trial ${call.trial}`),
        h("b", { class: "total" }, duration(call.total_ms / 1000)),
      ),
      lanes,
      hidden.length ? more : null,
      horizontal(this.scale),
      call.left_out ? h("p", { class: "said" }, `${call.left_out} more exchanges are in the run's file.`) : null,
      this.chosen().length && call.pins_of ? h("p", { class: "said" }, call.pins_of) : null,
    );
  }

  private percent(ms: number): number {
    return Math.min(Math.max((100 * ms) / this.end_ms, 0), 100);
  }

  private chosen(): Pin[] {
    return this.call.pins.filter((pin) => pin.finding === this.options.finding && this.percent(pin.at_ms) <= 100);
  }

  /** Numbered moments above all rows, with vertical lines through the rows. */
  private pins(): HTMLElement | null {
    const pins = this.chosen();
    if (!pins.length) return null;
    const taken: number[] = [];
    const placed = pins.map((pin) => {
      const left = this.percent(pin.at_ms);
      let level = 0;
      while (taken[level] !== undefined && left - (taken[level] ?? 0) < APART) level++;
      taken[level] = left;
      return { pin, left, level };
    });
    const lane = h("div", { class: "pins" });
    lane.style.height = `${20 * taken.length + 4}px`;
    for (const { pin, left, level } of placed) {
      const tip = `${pin.number}. ${pin.words}, at ${duration(pin.at_ms / 1000)}`;
      const mark = at(
        h(
          "span",
          { class: "pin", "data-pin": pin.number, tabindex: 0, "data-tip": tip, role: "img", "aria-label": tip },
          pin.number,
        ),
        left,
      );
      mark.style.top = `${20 * level}px`;
      const line = at(h("span", { class: "pin-line", "data-pin": pin.number, "aria-hidden": "true" }), left);
      line.style.top = `${20 * level + 18}px`;
      lane.append(line, mark);
    }
    return lane;
  }

  /** The row of the whole call, with the times in which it only waited. */
  private span(): HTMLElement {
    const { call } = this;
    const told = `the call: ${duration(call.total_ms / 1000)}`;
    const waits = call.waits.map((wait) => `${wait.words} ${duration((wait.to_ms - wait.from_ms) / 1000)}`);
    const said = [told, ...waits].join("; ");
    const picture = s("svg", { height: ROW, role: "img", tabindex: 0, "aria-label": said, "data-tip": said });
    const names: (HTMLElement | null)[] = [];
    picture.append(rect(0, this.percent(call.total_ms), 3, ROW - 6, "whole", told));
    for (const wait of call.waits) {
      const [left, width] = this.place(wait.from_ms, wait.to_ms);
      const tip = `${wait.words}: ${duration((wait.to_ms - wait.from_ms) / 1000)}, from ${duration(wait.from_ms / 1000)}`;
      picture.append(rect(left, width, 3, ROW - 6, `wait ${kind(wait.kind)}`, tip));
      const took = duration((wait.to_ms - wait.from_ms) / 1000);
      names.push(label(left, width, "wait-words", `${wait.words} ${took}`, took));
    }
    return h(
      "div",
      { class: "lane whole-lane" },
      h("p", {}, h("span", { class: "what" }, "the call")),
      named(picture, names),
    );
  }

  private place(from_ms: number, to_ms: number): [left: number, width: number] {
    const left = this.percent(from_ms);
    return [left, Math.max(this.percent(to_ms) - left, NARROWEST)];
  }

  private row(exchange: ExchangeRow, index: number): HTMLElement {
    const said = this.words(exchange);
    const picture = s("svg", {
      height: ROW,
      role: "img",
      "aria-label": said,
      "data-tip": said,
    });
    for (const value of this.scale.ticks) {
      const x = `${this.scale.percent(value)}%`;
      picture.append(s("line", { class: "grid", x1: x, x2: x, y1: 0, y2: ROW }));
    }
    const late: Child[] = [];
    const names: (HTMLElement | null)[] = [];
    for (const [phase, from_ms, to_ms] of exchange.phases) {
      if (from_ms > this.end_ms || to_ms < 0) continue;
      const [left, width] = this.place(from_ms, to_ms);
      const open = phase === "stream-open" || phase === "listening";
      const height = open ? 6 : 12;
      const tip = `${this.phases.get(phase) ?? phase}: ${duration((to_ms - from_ms) / 1000)}, from ${duration(from_ms / 1000)} to ${duration(to_ms / 1000)}`;
      picture.append(rect(left, Math.min(width, 100 - left), (ROW - height) / 2, height, `phase ${kind(phase)}`, tip));
      const took = duration((to_ms - from_ms) / 1000);
      if (!open) names.push(label(left, width, `on-${kind(phase)}`, `${phase} ${took}`, phase));
      if (to_ms > this.end_ms * 1.001) late.push(h("small", { class: "late" }, `open to ${duration(to_ms / 1000)} →`));
    }
    for (const [label, at_ms] of exchange.marks) {
      if (at_ms < 0 || at_ms > this.end_ms) continue;
      const result = label === "result";
      const tip = `${label} at ${duration(at_ms / 1000)}`;
      picture.append(
        s("circle", {
          class: result ? "result" : "mark",
          cx: `${this.percent(at_ms)}%`,
          cy: ROW / 2,
          r: result ? 4 : 2,
          "data-tip": tip,
        }),
      );
    }
    return h(
      "div",
      { class: exchange.repeats ? "lane repeats" : "lane" },
      h(
        "p",
        {},
        h("span", { class: "number" }, index + 1),
        h("span", { class: "what" }, exchange.label),
        exchange.where ? h("span", { class: "where" }, exchange.where) : null,
        exchange.status === undefined
          ? null
          : h("span", { class: exchange.status >= 400 ? "chip bad" : "chip" }, exchange.status),
        exchange.connection === undefined
          ? null
          : h(
              "span",
              {
                class: `chip c${(exchange.connection - 1) % 6}`,
                "data-tip": `connection ${exchange.connection} of this call`,
              },
              `conn ${exchange.connection}`,
            ),
        exchange.repeats ? h("span", { class: "again" }, `sent again, as row ${exchange.repeats}`) : null,
        late,
      ),
      named(picture, names),
    );
  }

  private words(exchange: ExchangeRow): string {
    const phases = exchange.phases.map(
      ([phase, from_ms, to_ms]) =>
        `${this.phases.get(phase) ?? phase} ${duration(from_ms / 1000)} to ${duration(to_ms / 1000)}`,
    );
    return `${exchange.label}: ${phases.join("; ") || "no phases seen"}`;
  }
}
