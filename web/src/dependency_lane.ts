// A lane of a call's waterfall: the requests of the server to one dependency.

import { grid } from "./axis";
import { h, s } from "./dom";
import { rect } from "./ledger";
import type { LaneShown } from "./page.gen";
import { duration } from "./quantities";
import type { Scale } from "./scale";

const BAR = 10;
const STEP = BAR + 2;
/** Rows for requests that overlap. Further ones share the last row. */
const MOST_ROWS = 8;
/** Requests that the name of the lane contains. */
const MOST_NAMED = 8;

/** The lane. `place` gives the position and the width of a time in percent. */
export function dependencyLane(
  lane: LaneShown,
  scale: Scale,
  place: (from_ms: number, to_ms: number) => [left: number, width: number],
): HTMLElement {
  const rows = stack(lane);
  const height = STEP * (rows.reduce((most, row) => Math.max(most, row), 0) + 1) + 4;
  const named = lane.bars.slice(0, MOST_NAMED).map(words);
  const more = lane.bars.length > MOST_NAMED ? [`${lane.bars.length - MOST_NAMED} more`] : [];
  const said = `${lane.name}, ${lane.note}: ${[...named, ...more].join("; ")}`;
  const picture = s("svg", { height, role: "group", "aria-label": said, "data-tip": said });
  picture.append(...grid(scale, height));
  const bars = lane.bars.map(([pattern, from_ms, to_ms], index) => {
    const [left, width] = place(from_ms, to_ms);
    const told = words([pattern, from_ms, to_ms]);
    const y = 2 + STEP * (rows[index] ?? 0);
    const bar = rect(left, Math.min(width, 100 - left), y, BAR, "phase k-dependency", told);
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", told);
    bar.setAttribute("tabindex", "-1");
    return bar;
  });
  picture.append(...bars);
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const next = step === undefined ? undefined : bars[bars.findIndex((bar) => bar === event.target) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  return h(
    "div",
    { class: "lane to-dependency" },
    h("p", {}, h("span", { class: "number" }, "→"), h("span", { class: "what" }, lane.name), h("small", {}, lane.note)),
    picture,
  );
}

function words([pattern, from_ms, to_ms]: LaneShown["bars"][number]): string {
  return `${pattern}: ${duration((to_ms - from_ms) / 1000)}, from ${duration(from_ms / 1000)}`;
}

/** The row of each request: the first one that is free when the request begins. */
function stack(lane: LaneShown): number[] {
  const free: number[] = [];
  return lane.bars.map(([, from_ms, to_ms]) => {
    const found = free.findIndex((end_ms) => end_ms <= from_ms);
    const row = found >= 0 ? found : Math.min(free.length, MOST_ROWS - 1);
    free[row] = Math.max(free[row] ?? 0, to_ms);
    return row;
  });
}
