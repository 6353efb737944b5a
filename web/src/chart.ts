// Charts of lines over a common axis. The browser stretches the paths, so a chart follows the width of its column
// without a script. Texts are HTML elements outside the picture, so they keep their size.

import { horizontal, vertical } from "./axis";
import { at, h, s } from "./dom";
import type { Scale } from "./scale";

const WIDE = 1000;

export interface Line {
  readonly name: string;
  readonly kind: string;
  /** Values in the order of `places`; `undefined` and `null` are gaps. */
  readonly values: readonly (number | null | undefined)[];
  /** `area` is filled to zero; `steps` is an area with values as wide as their places; `bars` are separate. */
  readonly form?: "line" | "area" | "steps" | "bars";
}

export interface Chart {
  readonly title: string;
  readonly height: number;
  /** Horizontal positions of the values, in percent of the width. */
  readonly places: readonly number[];
  readonly y: Scale;
  readonly words: (value: number) => string;
  readonly lines: readonly Line[];
  readonly said: string;
}

/** A chart, with the elements of `overlay` drawn over it. */
export function chart(one: Chart, ...overlay: (Element | null)[]): HTMLElement {
  const picture = s("svg", {
    class: "lines",
    viewBox: `0 0 ${WIDE} ${one.height}`,
    preserveAspectRatio: "none",
    height: one.height,
    role: "img",
    "aria-label": one.said,
  });
  for (const value of one.y.ticks) {
    const y = up(one.y.percent(value), one.height);
    picture.append(s("line", { class: "grid", x1: 0, x2: WIDE, y1: y, y2: y }));
  }
  for (const line of one.lines) picture.append(...drawn(line, one));
  return h(
    "div",
    { class: "chart" },
    h(
      "h4",
      {},
      one.title,
      h(
        "small",
        {},
        one.lines.filter((line) => line.name).map((line) => h("span", { class: `line-key ${line.kind}` }, line.name)),
      ),
    ),
    h(
      "div",
      { class: "frame" },
      vertical(one.y, one.words),
      h("div", { class: "field" }, picture, ...overlay.filter((each) => each !== null)),
    ),
  );
}

/** The common axis below a column of charts. */
export function foot(scale: Scale, words: (value: number) => string): HTMLElement {
  return h(
    "div",
    { class: "frame" },
    h("div", { class: "upright" }),
    h("div", { class: "field" }, horizontal(scale, words)),
  );
}

function drawn(line: Line, one: Chart): SVGPathElement[] {
  const runs: [number, number][][] = [];
  let run: [number, number][] = [];
  const half = apart(one) / 2;
  line.values.forEach((value, index) => {
    if (value === null || value === undefined) {
      if (run.length) runs.push(run);
      run = [];
    } else {
      const [x, y] = [((one.places[index] ?? 0) * WIDE) / 100, up(one.y.percent(value), one.height)];
      if (line.form === "steps") run.push([x - half, y], [x + half, y]);
      else run.push([x, y]);
    }
  });
  if (run.length) runs.push(run);
  if (line.form === "bars") return [s("path", { class: `bars ${line.kind}`, d: bars(line, one) })];
  const paths = runs.map((points) => s("path", { class: `stroke ${line.kind}`, d: path(points) }));
  if (line.form !== "area" && line.form !== "steps") return paths;
  const areas = runs.map((points) => {
    const [first = [0, 0], last = [0, 0]] = [points[0], points.at(-1)];
    return s("path", {
      class: `area ${line.kind}`,
      d: `${path(points)}L${last[0]} ${one.height}L${first[0]} ${one.height}Z`,
    });
  });
  return [...areas, ...paths];
}

function path(points: readonly [number, number][]): string {
  // A path with a single point would be invisible, so it becomes a short line.
  const [x, y] = points[0] ?? [0, 0];
  if (points.length === 1) return `M${x.toFixed(1)} ${y.toFixed(1)}h1`;
  return points.map(([left, top], index) => `${index ? "L" : "M"}${left.toFixed(1)} ${top.toFixed(1)}`).join("");
}

function bars(line: Line, one: Chart): string {
  const width = apart(one) * 0.7;
  return line.values
    .map((value, index) => {
      if (!value) return "";
      const x = ((one.places[index] ?? 0) * WIDE) / 100 - width / 2;
      const y = Math.min(up(one.y.percent(value), one.height), one.height - 2);
      return `M${x.toFixed(1)} ${one.height}V${y.toFixed(1)}h${width.toFixed(1)}V${one.height}Z`;
    })
    .join("");
}

/** The distance between two neighbouring places. */
function apart({ places }: Chart): number {
  const [first, last] = [places[0] ?? 0, places.at(-1) ?? 0];
  return places.length > 1 ? ((last - first) * WIDE) / 100 / (places.length - 1) : WIDE;
}

function up(percent: number, height: number): number {
  return height * (1 - percent / 100);
}

/** A column of charts whose values at one place are shown as text, chosen by the pointer or the arrow keys. */
export function reading(
  charts: readonly HTMLElement[],
  below: HTMLElement,
  places: readonly number[],
  words: (index: number) => string,
): HTMLElement {
  const box = h("p", { class: "reading", role: "status" });
  const cursors = charts.map((one) => {
    const cursor = h("div", { class: "cursor", hidden: true });
    one.querySelector(".field")?.append(cursor);
    return cursor;
  });
  let now = -1;
  const tell = (index: number): void => {
    now = Math.min(Math.max(index, 0), places.length - 1);
    for (const cursor of cursors) {
      cursor.hidden = false;
      at(cursor, places[now] ?? 0);
    }
    box.textContent = words(now);
  };
  const group = h(
    "div",
    { class: "charted", tabindex: 0, role: "group", "aria-label": "Charts; the arrow keys read them" },
    charts,
  );
  group.addEventListener("pointermove", (event) => {
    const field = charts[0]?.querySelector(".field")?.getBoundingClientRect();
    if (!field || field.width === 0) return;
    const wanted = (100 * (event.clientX - field.left)) / field.width;
    if (wanted >= 0 && wanted <= 100) tell(nearest(places, wanted));
  });
  group.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    tell(now + by);
  });
  return h("div", {}, group, below, box);
}

function nearest(places: readonly number[], wanted: number): number {
  let best = 0;
  places.forEach((place, index) => {
    if (Math.abs(place - wanted) < Math.abs((places[best] ?? 0) - wanted)) best = index;
  });
  return best;
}
