// The flame graph of a tool: the time of a call by the calls of its stacks, with search, and zoom by pointer and keyboard.

import { h, legend } from "./dom";
import { CALL, FlameTree, type Box, type Direction } from "./flame_tree";
import type { FlameShown } from "./page.gen";
import { duration, share } from "./quantities";

const ROW = 20;
const KINDS: readonly (readonly [kind: string, name: string])[] = [
  ["own", "the server's own code"],
  ["library", "libraries"],
  ["interpreter", "Python itself"],
  ["dependency", "waited for a dependency"],
  ["rest", "no source tells"],
];
const DIRECTIONS: Readonly<Record<string, Direction>> = {
  ArrowUp: "parent",
  ArrowDown: "child",
  ArrowLeft: "left",
  ArrowRight: "right",
};
const HINT = "Choose a call to zoom in: by a click, or by the arrow keys and Enter. Escape shows the whole call.";

/** The flame graph of a call that takes `whole_s` seconds. */
export function flame(shown: FlameShown, whole_s: number, title: string): HTMLElement {
  return new Graph(shown, whole_s, title).element;
}

class Graph {
  readonly element: HTMLElement;
  private readonly tree: FlameTree;
  private readonly bars: HTMLElement;
  private readonly reading = h("p", { class: "said", role: "status" }, HINT);
  private readonly whole: HTMLElement;
  private boxes: readonly Box[] = [];
  private zoomed = CALL;
  /** The node with the tab stop. */
  private current = CALL;
  private sought = "";

  constructor(
    private readonly shown: FlameShown,
    whole_s: number,
    title: string,
  ) {
    this.tree = new FlameTree(shown, whole_s);
    this.whole = h("button", { type: "button", class: "more", onclick: () => this.zoom(CALL) }, "Show the whole call");
    const sought: HTMLInputElement = h("input", {
      type: "search",
      placeholder: "function or file",
      oninput: () => this.search(sought.value),
    });
    this.bars = h("div", {
      class: "flame",
      role: "tree",
      "aria-label": `${title}: time by function`,
      onclick: (event: Event) => this.choose(event),
      onkeydown: (event: KeyboardEvent) => this.key(event),
    });
    const used = new Set(shown.frames.map((frame) => shown.kinds[frame]));
    const waits = shown.waiting_s.some((seconds, index) => seconds > 0 && this.kind(index + 1) === "own");
    this.element = h(
      "figure",
      { class: "flame-graph" },
      h("div", { class: "controls" }, h("label", {}, "Search ", sought), this.whole),
      legend([
        ...KINDS.filter(([kind]) => used.has(kind as FlameShown["kinds"][number])).map(
          ([kind, name]) => [`block b-${kind}`, name] as const,
        ),
        ...(waits ? [["block b-own waits", "hatched: a thread waited"] as const] : []),
      ]),
      this.reading,
      this.bars,
    );
    this.draw();
  }

  private draw(): void {
    this.boxes = this.tree.boxes(this.zoomed);
    if (!this.boxes.some((box) => box.node === this.current)) this.current = this.zoomed;
    const levels = this.boxes.reduce((most, box) => Math.max(most, box.level), 0) + 1;
    this.bars.style.height = `${levels * ROW}px`;
    this.bars.replaceChildren(...this.boxes.map((box) => this.block(box)));
    this.whole.hidden = this.zoomed === CALL;
    this.mark();
  }

  private block({ node, level, left, width }: Box): HTMLElement {
    const around = level < this.tree.path(this.zoomed).length - 1;
    const words = this.words(node);
    const found = h(
      "div",
      {
        class: `block b-${this.kind(node)}${around ? " around" : ""}`,
        role: "treeitem",
        "data-node": node,
        "data-tip": words,
        "aria-label": words,
        "aria-level": level + 1,
        tabindex: node === this.current ? 0 : -1,
      },
      h("span", {}, this.label(node)),
    );
    found.style.left = `${left.toFixed(3)}%`;
    found.style.width = `${width.toFixed(3)}%`;
    found.style.top = `${level * ROW}px`;
    found.style.setProperty("--ran", `${this.ran(node).toFixed(1)}%`);
    return found;
  }

  private frame(node: number): number {
    return this.shown.frames[node - 1] ?? -1;
  }

  private kind(node: number): string {
    return node === CALL ? "call" : (this.shown.kinds[this.frame(node)] ?? "others");
  }

  private label(node: number): string {
    if (node === CALL) return "the call at the server";
    const name = this.shown.names[this.frame(node)] ?? "";
    return this.kind(node) === "own" ? `${name} · ${this.place(node)}` : name;
  }

  private place(node: number): string {
    return this.shown.places[this.frame(node)] ?? "";
  }

  /** Percentage of the time of a node in which a thread ran. A node that is no call of a stack is drawn plainly. */
  private ran(node: number): number {
    if (!["own", "library", "interpreter", "others"].includes(this.kind(node))) return 100;
    return (100 * (this.shown.running_s[node - 1] ?? 0)) / Math.max(this.seconds(node), 1e-12);
  }

  private seconds(node: number): number {
    return this.tree.time[node] ?? 0;
  }

  private words(node: number): string {
    const seconds = this.seconds(node);
    const place = this.kind(node) === "own" ? "" : this.place(node);
    const name = place ? `${this.label(node)} (${place})` : this.label(node);
    const parts = [`${name}: ${duration(seconds)}, ${share(seconds, this.seconds(CALL))} of the call`];
    const waited = this.shown.waiting_s[node - 1] ?? 0;
    if (waited > 0 && this.ran(node) < 100) parts.push(`${duration(waited)} of it waiting`);
    const alone = this.tree.alone(node);
    if (node !== CALL && alone > 0 && alone < seconds * 0.999) parts.push(`${duration(alone)} in itself`);
    return parts.join("; ");
  }

  private zoom(node: number): void {
    const had = this.bars.contains(document.activeElement);
    this.zoomed = node;
    this.current = node;
    this.draw();
    if (had) this.focus(node);
  }

  private focus(node: number): void {
    this.at(this.current)?.setAttribute("tabindex", "-1");
    this.current = node;
    const found = this.at(node);
    found?.setAttribute("tabindex", "0");
    found?.focus();
  }

  private at(node: number): HTMLElement | null {
    return this.bars.querySelector(`[data-node="${node}"]`);
  }

  private choose(event: Event): void {
    const found = event.target instanceof Element ? event.target.closest("[data-node]") : null;
    if (found) this.zoom(Number(found.getAttribute("data-node")));
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = DIRECTIONS[event.key];
    if (direction) {
      const next = this.tree.neighbour(this.boxes, this.current, direction);
      if (next !== undefined) this.focus(next);
    } else if (event.key === "Enter" || event.key === " ") this.zoom(this.current);
    else if (event.key === "Escape") this.zoom(CALL);
    else return;
    event.preventDefault();
  }

  private search(words: string): void {
    this.sought = words.trim().toLowerCase();
    this.mark();
  }

  /** Marks the nodes that match the search, and writes their time. */
  private mark(): void {
    const { sought } = this;
    const found = this.tree.search(
      (node) => sought !== "" && `${this.label(node)} ${this.place(node)}`.toLowerCase().includes(sought),
    );
    this.bars.classList.toggle("sought", sought !== "");
    for (const block of this.bars.children) {
      block.classList.toggle("match", found.nodes.has(Number(block.getAttribute("data-node"))));
    }
    const told = `${duration(found.seconds)}, ${share(found.seconds, this.seconds(CALL))} of the call`;
    const matches = found.nodes.size === 1 ? "1 call matches" : `${found.nodes.size} calls match`;
    this.reading.textContent = sought ? (found.nodes.size ? `${matches}: ${told}` : "No call matches.") : HINT;
  }
}
