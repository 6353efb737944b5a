// The findings: each cause once, with its evidence numbered as in the drawing of the call.

import { h, section } from "./dom";
import type { FindingShown, Page } from "./page.gen";
import { duration } from "./quantities";

/** The section with the findings. `open` shows the evidence of a finding in its call. */
export function findings(page: Page, open: ((index: number, finding: number) => void) | null): HTMLElement | null {
  if (!page.findings.length) return null;
  return section(
    "findings",
    "What was found",
    page.findings.map((found, number) => {
      const drawn = page.cases[found.case]?.call?.pins.some((pin) => pin.finding === number);
      return card(found, drawn && open ? () => open(found.case, number) : null);
    }),
  );
}

function card(found: FindingShown, show: (() => void) | null): HTMLElement {
  const facts: [string, string | HTMLElement | HTMLElement[]][] = [
    ["Costs", found.cost],
    ["Seen at", found.places.map((place) => h("div", {}, `${place.target} (${place.operations}): ${place.subjects}`))],
  ];
  if (found.advice) facts.push(["Do", h("span", { class: "do" }, found.advice)]);
  if (found.disproof) facts.push(["Check", found.disproof]);
  for (const other of found.alternatives) facts.push(["Or", other]);
  return h(
    "article",
    { class: `finding ${found.severity}` },
    h(
      "header",
      {},
      h("h3", {}, found.title),
      h(
        "p",
        { class: "facts" },
        h("span", { class: `tag ${found.severity}` }, found.severity),
        h("code", {}, found.code),
        h("span", {}, found.confidence),
      ),
    ),
    h(
      "div",
      { class: "argument" },
      h(
        "div",
        {},
        h("p", {}, found.explanation),
        h(
          "dl",
          {},
          facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
        ),
      ),
      found.evidence.length
        ? h(
            "div",
            { class: "evidence" },
            h("h4", {}, "Evidence", h("small", {}, found.evidence_of)),
            h(
              "ol",
              {},
              found.evidence.map((item) =>
                h(
                  "li",
                  {},
                  h("span", { class: "pin" }, item.number),
                  h("b", { "data-tip": `event ${item.event} of the recording` }, duration(item.at_s)),
                  h("span", {}, item.words),
                ),
              ),
            ),
            show ? h("button", { type: "button", class: "show", onclick: show }, "Show it on the wire") : null,
          )
        : null,
    ),
  );
}
