// The foot of the page: the machine, the set-up and the method.

import { h, section } from "./dom";
import type { Page } from "./page.gen";

/** The sections of the set-up. */
export function setup(page: Page): HTMLElement[] {
  return [
    section(
      "setup",
      "Set-up",
      h(
        "dl",
        { class: "facts-list" },
        page.setup.map((fact) => [h("dt", {}, fact.name), h("dd", {}, fact.value)]),
      ),
      page.packages.map((one) =>
        h(
          "details",
          {},
          h("summary", {}, `${one.label}: ${one.packages.length} packages with their exact versions`),
          h(
            "p",
            { class: "packages" },
            one.packages.map((each) => [h("code", {}, each), " "]),
          ),
        ),
      ),
    ),
    section(
      "method",
      "How it was measured",
      page.method.map((fact) => h("p", {}, h("b", {}, `${fact.name}. `), fact.value)),
      parts(page),
    ),
  ];
}

function parts(page: Page): HTMLElement | null {
  if (!page.cases.some((one) => one.ledger.length)) return null;
  return h(
    "details",
    {},
    h("summary", {}, "The parts of a call"),
    h(
      "dl",
      { class: "facts-list" },
      page.parts.map((part) => [h("dt", {}, part.key), h("dd", {}, part.words)]),
    ),
  );
}
