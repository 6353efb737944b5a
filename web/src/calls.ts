// Recorded calls: one, or two side by side, with the evidence of the chosen finding marked in them.

import { choice, h, legend, section } from "./dom";
import type { Page } from "./page.gen";
import { times } from "./quantities";
import { waterfall } from "./waterfall";

const NONE = -1;
/** Ratio of two calls' lengths from which each is drawn on its own scale, since a common one would hide the shorter. */
const FAR_APART = 8;

export interface Calls {
  readonly element: HTMLElement;
  /** Shows the call of a case, with the evidence of a finding where it has any. */
  show(index: number, finding?: number): void;
}

/** The section with the calls; `null` where no call was recorded. */
export function calls(page: Page): Calls | null {
  if (!page.pairs.length) return null;
  const view = new View(page);
  view.show(page.pairs[0] ?? 0, undefined, false);
  return { element: view.element, show: (index, finding) => view.show(index, finding, true) };
}

class View {
  readonly element: HTMLElement;
  private first = NONE;
  private second = NONE;
  private finding: number | undefined;
  private together = false;
  private readonly body = h("div", { class: "pair" });
  private readonly firstChoice: HTMLSelectElement;
  private readonly secondChoice: HTMLSelectElement;
  private readonly marks: HTMLSelectElement;
  private readonly scales: HTMLElement;

  constructor(private readonly page: Page) {
    this.firstChoice = this.select((index) => this.show(index, undefined, false));
    this.secondChoice = this.select((index) => ((this.second = index), this.draw()), true);
    this.marks = h("select", { onchange: () => ((this.finding = Number(this.marks.value)), this.draw()) });
    this.scales = choice(
      "Scales",
      ["own scales", "one scale"],
      0,
      (index) => ((this.together = index === 1), this.draw()),
    );
    const seen = new Set(
      page.cases.flatMap((one) => one.call?.exchanges.flatMap((each) => each.phases.map(([phase]) => phase)) ?? []),
    );
    const asked = page.cases.some((one) => one.call?.lanes.length);
    const many = page.cases.filter((one) => one.call).length > 1;
    this.element = section(
      "calls",
      "On the wire",
      h(
        "div",
        { class: "controls" },
        h("label", {}, "Call ", this.firstChoice),
        many ? h("label", {}, "beside ", this.secondChoice) : null,
        many ? this.scales : null,
        h("label", { class: "of-marks" }, "evidence ", this.marks),
      ),
      legend([
        ...page.phases
          .filter((phase) => seen.has(phase.key))
          .map((phase) => [`phase k-${phase.key}`, phase.words] as const),
        ...(asked ? [["phase k-dependency", "request of the server to a dependency"] as const] : []),
        ["key-result", "result complete"],
        ["key-returns", "call returns"],
        ["key-wait", "waiting"],
      ]),
      this.body,
    );
  }

  show(index: number, finding: number | undefined, go: boolean): void {
    const shown = this.page.cases[index];
    if (!shown?.call) return;
    this.first = index;
    this.second = shown.better ?? NONE;
    const marked = new Set(shown.call.pins.map((pin) => pin.finding));
    this.finding =
      finding !== undefined && marked.has(finding) ? finding : shown.codes.find((code) => marked.has(code));
    this.offer(marked);
    this.draw();
    if (go) this.element.scrollIntoView({ block: "start" });
  }

  private offer(marked: ReadonlySet<number>): void {
    this.marks.replaceChildren(
      ...[...marked].map((code) => h("option", { value: code }, this.page.findings[code]?.title ?? "")),
      h("option", { value: NONE }, "none"),
    );
    this.marks.value = String(this.finding ?? NONE);
    (this.marks.parentElement as HTMLElement).hidden = marked.size === 0;
  }

  private draw(): void {
    this.firstChoice.value = String(this.first);
    this.secondChoice.value = String(this.second);
    const shown = [this.first, this.second].flatMap((index) => this.page.cases[index] ?? []);
    const totals = shown.map((one) => one.call?.total_ms ?? 0);
    const longest = Math.max(...totals);
    this.scales.hidden = shown.length < 2;
    const end_ms = this.together && shown.length > 1 ? longest : undefined;
    this.body.className = shown.length > 1 ? "pair two" : "pair";
    this.body.replaceChildren(
      ...shown.flatMap((one) =>
        one.call ? [waterfall(this.page, one, one.call, { end_ms, finding: this.finding })] : [],
      ),
    );
    const ratio = longest / Math.max(Math.min(...totals), 1e-9);
    if (shown.length > 1 && !this.together && ratio >= FAR_APART) {
      this.body.append(
        h("p", { class: "said" }, `Each on a scale of its own: the longer call is ${times(ratio)} as long.`),
      );
    }
  }

  private select(choose: (index: number) => void, none = false): HTMLSelectElement {
    const found: HTMLSelectElement = h("select", { onchange: () => choose(Number(found.value)) });
    if (none) found.append(h("option", { value: NONE }, "no other"));
    const order = [...new Set([...this.page.pairs, ...this.page.cases.keys()])].filter(
      (index) => this.page.cases[index]?.call,
    );
    for (const index of order) {
      const one = this.page.cases[index];
      if (one) found.append(h("option", { value: index }, `${one.subject} · ${one.operation} at ${one.target}`));
    }
    return found;
  }
}
