// Trials as dots on one row: the cold trial hollow, the warm trials solid, their median a line.

import { grid } from "./axis";
import { s } from "./dom";
import { duration } from "./quantities";
import { least, most, type Scale } from "./scale";

const HEIGHT = 26;
/** Vertical offsets of consecutive trials, so that equal trials don't hide each other. */
const SPREAD = [-4, 4, -1.5, 1.5];
const SMALL_FROM = 60;

export interface Strip {
  readonly values: readonly number[];
  readonly median?: number | undefined;
  /** Median of the first subject, drawn as a line through all rows. */
  readonly baseline?: number | undefined;
  readonly tone: string;
  /** Whether the first value is a cold trial. */
  readonly cold: boolean;
  readonly name: string;
  readonly words?: (value: number) => string;
}

/** One row of a chart, with its values on `scale`. */
export function strip(row: Strip, scale: Scale): SVGSVGElement {
  const words = row.words ?? duration;
  const middle = HEIGHT / 2;
  const picture = s("svg", { class: `strip ${row.tone}`, height: HEIGHT, role: "img", "aria-label": said(row, words) });
  picture.append(...grid(scale, HEIGHT));
  if (row.baseline !== undefined) picture.append(upright(scale.percent(row.baseline), 0, HEIGHT, "baseline"));
  // The median is drawn below the dots, because a line above them would hide those at the median.
  if (row.median !== undefined) {
    const line = upright(scale.percent(row.median), 2, HEIGHT - 2, "median");
    line.setAttribute("data-tip", `median ${words(row.median)}`);
    picture.append(line);
  }
  const radius = row.values.length > SMALL_FROM ? 2.6 : 4;
  // The cold trial is drawn last, so that it is on top.
  for (let number = row.values.length - 1; number >= 0; number--) {
    const value = row.values[number] ?? 0;
    const cold = row.cold && number === 0;
    const spread = row.values.length > SMALL_FROM ? hashed(number) * 8 : (SPREAD[(number + 3) % SPREAD.length] ?? 0);
    picture.append(
      s("circle", {
        class: cold ? "dot cold" : "dot",
        cx: `${scale.percent(value).toFixed(2)}%`,
        cy: cold ? middle : middle + spread,
        r: radius,
        "data-tip": `${row.name} ${number + 1}${cold ? " (cold)" : ""}: ${words(value)}`,
      }),
    );
  }
  return picture;
}

function upright(x: number, top: number, bottom: number, kind: string): SVGLineElement {
  const place = `${x.toFixed(2)}%`;
  return s("line", { class: kind, x1: place, x2: place, y1: top, y2: bottom });
}

/** A pseudo-random number between -1 and 1, which is always the same for the same dot. */
function hashed(number: number): number {
  return ((number * 2654435761) % 1000) / 500 - 1;
}

function said(row: Strip, words: (value: number) => string): string {
  const values = row.values.length > 12 ? [least(row.values), most(row.values)] : row.values;
  const told = values.map(words).join(row.values.length > 12 ? " to " : ", ");
  return `${row.values.length} ${row.name}s${row.cold ? ", the first cold" : ""}: ${told}`;
}
