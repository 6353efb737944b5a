// The layers of one server: their times as one stacked bar, and each batch as a dot.

import { horizontal } from "./axis";
import { h, s, section } from "./dom";
import { label, named } from "./label";
import { rect } from "./ledger";
import { panel } from "./matrix";
import type { LayerShown, LayersShown } from "./page.gen";
import { duration } from "./quantities";
import { covering } from "./scale";
import { strip } from "./strip";

const HEIGHT = 34;
/** Colours of the layers, which are those of the ledger for the same kind of work. */
const COLOURS: Record<string, string> = {
  direct: "k-service",
  handler: "k-dispatch",
  "in-process": "k-transport",
  socket: "k-transport",
};

/** The sections of a measurement of layers. */
export function layers(told: LayersShown): HTMLElement[] {
  const measured = told.layers.filter((one) => one.median_s !== undefined);
  const scale = covering(measured.flatMap((one) => one.batches_s));
  const dots = panel(
    scale.logarithmic ? "each batch a dot, logarithmic scale" : "each batch a dot",
    told.layers.map((one) => ({
      who: one.name,
      tip: one.meaning,
      plot:
        one.median_s === undefined
          ? h("p", { class: "absent", "data-tip": one.remark }, one.remark)
          : strip({ values: one.batches_s, median: one.median_s, tone: "same", cold: false, name: "batch" }, scale),
      figure: one.median_s === undefined ? "" : duration(one.median_s),
      note: one.ratio,
    })),
    measured.length ? horizontal(scale) : null,
  );
  return [
    section(
      "layers",
      "Layers",
      h("p", { class: "lead" }, told.title),
      bar(measured),
      h("div", { class: "panels of-1" }, dots),
      table(told.layers),
    ),
    section(
      "ran",
      "What is in them",
      h(
        "ul",
        { class: "plain" },
        told.conditions.map((sentence) => h("li", {}, sentence)),
      ),
    ),
  ];
}

/** The outermost layer as a bar of the layers inside it. */
function bar(measured: readonly LayerShown[]): HTMLElement | null {
  const adding = measured.filter((one) => one.inside && (one.adds_s ?? 0) > 0);
  const whole = adding.reduce((sum, one) => sum + (one.adds_s ?? 0), 0);
  if (whole <= 0) return null;
  const said = adding.map((one) => `${one.name} ${duration(one.adds_s ?? 0)}`).join("; ");
  const picture = s("svg", {
    class: "bar",
    height: HEIGHT,
    role: "img",
    tabindex: 0,
    "aria-label": said,
    "data-tip": said,
  });
  const names: (HTMLElement | null)[] = [];
  let from = 0;
  for (const one of adding) {
    const width = (100 * (one.adds_s ?? 0)) / whole;
    const colour = COLOURS[one.name] ?? "k-rest";
    picture.append(
      rect(from, width, 2, HEIGHT - 4, `part ${colour}`, `${one.name} adds ${duration(one.adds_s ?? 0)}, ${one.share}`),
    );
    const adds = `${one.name} ${duration(one.adds_s ?? 0)}`;
    names.push(label(from, width, `on-${colour}`, adds, one.name));
    from += width;
  }
  return h("div", { class: "whole-bar" }, named(picture, names));
}

function table(all: readonly LayerShown[]): HTMLElement {
  const columns = ["median", "quartiles", "over direct", "ratio", "adds", "share"];
  return h(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": "Layers" },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "layer"),
          columns.map((name) => h("th", { scope: "col", class: "figure" }, name)),
        ),
      ),
      h(
        "tbody",
        {},
        all.map((one) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, one.name, h("small", {}, ` ${one.meaning}`)),
            one.median_s === undefined
              ? h("td", { class: "remark", colspan: columns.length }, one.remark)
              : [duration(one.median_s), between(one), one.over, one.ratio, adds(one), one.share].map((value) =>
                  h("td", { class: "figure" }, value),
                ),
          ),
        ),
      ),
    ),
  );
}

function between(one: LayerShown): string {
  return one.low_s === undefined || one.high_s === undefined ? "" : `${duration(one.low_s)} – ${duration(one.high_s)}`;
}

function adds(one: LayerShown): string {
  return one.adds_s === undefined ? "" : `${one.adds_s < 0 ? "−" : ""}${duration(Math.abs(one.adds_s))}`;
}
