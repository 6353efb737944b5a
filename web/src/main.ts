// Entry point of the bundle. It shows the run in this file, or, served by `mcpace ui`, the view that the address names.

import * as api from "./api";
import type { Child } from "./dom";
import { h } from "./dom";
import { folder } from "./folder";
import { frame, show } from "./frame";
import { live } from "./live";
import type { Shell } from "./page.gen";
import { run } from "./run";
import "./style.css";
import { listen } from "./tip";

const LOOK_MS = 1000;

function begin(): void {
  const shell = JSON.parse(document.getElementById("data")?.textContent ?? "") as Shell;
  if (shell.page) {
    show(frame({ served: false }), shell.page.head.kind, run(shell.page));
  } else {
    const main = frame({ served: true });
    const routed = new Routed(main);
    window.addEventListener("hashchange", () => void routed.go());
    void routed.go();
  }
  listen();
}

/** Shows the view of the current address. Answers for an earlier address are ignored. */
class Routed {
  private turn = 0;

  constructor(private readonly main: HTMLElement) {}

  async go(): Promise<void> {
    const turn = ++this.turn;
    api.settle();
    try {
      const [, what = "", ...ids] = location.hash.split("/").map(decodeURIComponent);
      await this.view(turn, what, ids);
    } catch (problem) {
      this.put(turn, "", [h("header", { class: "head" }, h("h1", {}, said(problem)))]);
      if (!(problem instanceof api.Silent)) return;
      await pause();
      if (turn === this.turn) await this.go();
    }
  }

  private async view(turn: number, what: string, [first = "", second = ""]: string[]): Promise<void> {
    switch (what) {
      case "run":
        return this.put(turn, first, run(await api.page(first)));
      case "compare":
        return this.put(turn, "two runs", run(await api.comparison(first, second)));
      case "flight":
        return this.observe(turn, first);
      case "live":
        return this.follow(turn, first);
      default:
        return this.watch(turn);
    }
  }

  /** Follows a run in progress until it is saved, and then shows the saved run. */
  private async follow(turn: number, id: string): Promise<void> {
    for (let before = ""; turn === this.turn; await pause()) {
      try {
        const told = await api.live(id);
        const now = JSON.stringify(told);
        if (now !== before) this.put(turn, id, live(told), before !== "");
        before = now;
        if (told.ended) return;
      } catch (problem) {
        if (!(problem instanceof api.Refused) || problem.status !== 404 || turn !== this.turn) throw problem;
        location.hash = `#/run/${encodeURIComponent(id.replace(/\.live$/, ""))}`;
        return;
      }
    }
  }

  /** Shows a recording of the flight recorder, and refreshes it unless the reader is within a part of it. */
  private async observe(turn: number, id: string): Promise<void> {
    for (let before = ""; turn === this.turn; await pause()) {
      const told = await api.flight(id);
      const now = JSON.stringify(told);
      const busy = this.main.contains(document.activeElement);
      if (now === before || (busy && before)) continue;
      this.put(turn, told.head.subjects, run(told), before !== "");
      before = now;
    }
  }

  /** Shows the folder, and refreshes it unless the reader is choosing runs. */
  private async watch(turn: number): Promise<void> {
    for (let before = ""; turn === this.turn; await pause()) {
      const told = await api.listing();
      const now = JSON.stringify(told);
      const busy = this.main.querySelector("input:checked, input:focus") !== null;
      if (now === before || (busy && before)) continue;
      this.put(turn, told.folder, folder(told), before !== "");
      before = now;
    }
  }

  private put(turn: number, what: string, parts: readonly Child[], keep = false): void {
    if (turn === this.turn) show(this.main, what, parts, keep);
  }
}

function pause(): Promise<void> {
  return new Promise((done) => setTimeout(done, LOOK_MS));
}

function said(problem: unknown): string {
  if (problem instanceof api.Refused) return problem.message;
  if (problem instanceof api.Silent) return "mcpace ui doesn't answer: where it has ended, start it again.";
  return problem instanceof URIError ? "There is no such page here." : String(problem);
}

begin();
