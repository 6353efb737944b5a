// The tree of a flame graph: the place of each node, its neighbours, and the time that a search matches. Without the DOM.

import type { FlameShown } from "./page.gen";

/** The node of the whole call. Other nodes are positions in the lists of the page's model, counted from 1. */
export const CALL = 0;
/** Narrower nodes are not drawn, in percent. Zooming in makes them wider. */
const NARROWEST = 0.08;

/** A drawn node; positions in percent. */
export interface Box {
  readonly node: number;
  readonly level: number;
  readonly left: number;
  readonly width: number;
}

export type Direction = "parent" | "child" | "left" | "right";

export class FlameTree {
  /** Seconds of each node, with those within. */
  readonly time: readonly number[];
  private readonly parents: readonly number[];
  private readonly children: readonly (readonly number[])[];

  constructor(shown: FlameShown, whole_s: number) {
    const own = shown.running_s.map((seconds, index) => seconds + (shown.waiting_s[index] ?? 0));
    const children: number[][] = [[], ...own.map((): number[] => [])];
    shown.parents.forEach((parent, index) => children[parent]?.push(index + 1));
    const outermost = (children[CALL] ?? []).reduce((sum, node) => sum + (own[node - 1] ?? 0), 0);
    this.parents = [CALL, ...shown.parents];
    this.children = children;
    this.time = [Math.max(whole_s, outermost), ...own];
  }

  parent(node: number): number {
    return this.parents[node] ?? CALL;
  }

  /** The node and all nodes around it, from the whole call to the node. */
  path(node: number): number[] {
    const path = [node];
    while (path[0] !== CALL) path.unshift(this.parent(path[0] ?? CALL));
    return path;
  }

  /** Time of a node without the nodes within. */
  alone(node: number): number {
    const within = (this.children[node] ?? []).reduce((sum, child) => sum + (this.time[child] ?? 0), 0);
    return Math.max((this.time[node] ?? 0) - within, 0);
  }

  /** The nodes that are drawn where `focus` has the whole width: a node before those within it. */
  boxes(focus: number): Box[] {
    const path = this.path(focus);
    const found: Box[] = path.slice(0, -1).map((node, level) => ({ node, level, left: 0, width: 100 }));
    const scale = 100 / Math.max(this.time[focus] ?? 0, 1e-12);
    const open: Box[] = [{ node: focus, level: path.length - 1, left: 0, width: 100 }];
    for (let box = open.pop(); box; box = open.pop()) {
      found.push(box);
      const within: Box[] = [];
      let left = box.left;
      for (const node of this.children[box.node] ?? []) {
        const width = Math.min(scale * (this.time[node] ?? 0), box.left + box.width - left);
        if (width >= NARROWEST) within.push({ node, level: box.level + 1, left, width });
        left += Math.max(width, 0);
      }
      open.push(...within.reverse());
    }
    return found;
  }

  /** The node beside another one among the drawn nodes. */
  neighbour(boxes: readonly Box[], node: number, to: Direction): number | undefined {
    const at = boxes.find((box) => box.node === node);
    if (!at) return undefined;
    if (to === "parent") return node === CALL ? undefined : this.parent(node);
    if (to === "child") return boxes.find((box) => box.node !== node && this.parent(box.node) === node)?.node;
    const level = boxes.filter((box) => box.level === at.level);
    return level[level.indexOf(at) + (to === "left" ? -1 : 1)]?.node;
  }

  /** The matching nodes, and their time. A node within another matching node is not counted twice. */
  search(matches: (node: number) => boolean): { readonly nodes: ReadonlySet<number>; readonly seconds: number } {
    const nodes = new Set<number>();
    const inside = new Set<number>();
    let seconds = 0;
    // Parents come first.
    for (let node = 1; node < this.time.length; node++) {
      const covered = inside.has(this.parent(node));
      if (matches(node)) {
        nodes.add(node);
        if (!covered) seconds += this.time[node] ?? 0;
      }
      if (covered || nodes.has(node)) inside.add(node);
    }
    return { nodes, seconds };
  }
}
