// The frame of every view: the bar with the index, the colour theme, the keyboard shortcuts.

import { h, type Child } from "./dom";
import { hide } from "./tip";

type Theme = "auto" | "light" | "dark";
const THEMES: readonly Theme[] = ["auto", "light", "dark"];
const KEPT = "mcpace-theme";

const index = h("nav", { "aria-label": "Sections" });
const title = h("span", { class: "what" });
const themed = h("button", {
  type: "button",
  class: "theme",
  onclick: () => dress(THEMES[(THEMES.indexOf(theme) + 1) % 3] ?? "auto"),
});
const help = h(
  "dialog",
  { class: "help", "aria-label": "Keys" },
  h("h2", {}, "Keys"),
  h(
    "dl",
    { class: "facts-list" },
    [
      ["j, k", "next and previous section"],
      ["Tab", "from picture to picture: each tells its figures"],
      ["↑ ↓", "from row to row of a call or a panel"],
      ["← →", "from second to second of a chart, from request to request of a dependency"],
      ["Enter, Esc", "zoom into a call of a flame graph, and out again"],
      ["t", "light, dark, or as the system has it"],
      ["?", "this"],
    ].map(([key, words]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, words)]),
  ),
  h("form", { method: "dialog" }, h("button", { autofocus: true }, "Close")),
);
let theme: Theme = "auto";
let watcher: IntersectionObserver | null = null;

/** Creates the frame, once. Returns the element that contains the views. */
export function frame({ served }: { readonly served: boolean }): HTMLElement {
  const main = h("main", { id: "main", tabindex: -1 });
  const brand = served
    ? h("a", { class: "brand", href: "#/", "data-tip": "All runs" }, "mcpace")
    : h("b", { class: "brand" }, "mcpace");
  const bar = h(
    "div",
    { class: "topbar" },
    h(
      "div",
      {},
      brand,
      title,
      index,
      themed,
      h(
        "button",
        { type: "button", class: "keys", "aria-label": "Keys", "data-tip": "Keys", onclick: () => help.showModal() },
        "?",
      ),
    ),
  );
  document
    .getElementById("app")
    ?.replaceChildren(
      h(
        "a",
        { class: "skip", href: "#main", onclick: (event: Event) => (event.preventDefault(), main.focus()) },
        "Skip to the content",
      ),
      bar,
      main,
      help,
    );
  dress(remembered());
  document.addEventListener("keydown", key);
  return main;
}

/** Replaces the current view. `keep` preserves the scroll position. */
export function show(main: HTMLElement, what: string, parts: readonly Child[], keep = false): void {
  const place = window.scrollY;
  hide();
  title.textContent = what;
  main.replaceChildren(h("div", { class: "view" }, parts));
  list(main);
  window.scrollTo(0, keep ? place : 0);
}

function list(main: HTMLElement): void {
  const sections = ([...main.querySelectorAll("section[id]")] as HTMLElement[]).filter(
    (section) => section.dataset["index"] !== "",
  );
  const links = sections.map((section) =>
    h(
      "a",
      { href: `#${section.id}`, onclick: (event: Event) => (event.preventDefault(), go(section)) },
      section.dataset["index"] ?? section.querySelector("h2")?.textContent ?? "",
    ),
  );
  index.replaceChildren(...links);
  watcher?.disconnect();
  watcher = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const link = links[sections.indexOf(entry.target as HTMLElement)];
        if (entry.isIntersecting) link?.setAttribute("aria-current", "true");
        else link?.removeAttribute("aria-current");
      }
    },
    { rootMargin: "-52px 0px -45% 0px" },
  );
  sections.forEach((section) => watcher?.observe(section));
}

function go(section: Element | undefined): void {
  if (!section) return;
  section.scrollIntoView({ block: "start" });
  const heading = section.querySelector("h2");
  heading?.setAttribute("tabindex", "-1");
  heading?.focus({ preventScroll: true });
}

function key(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.target instanceof Element && event.target.matches("input, select, textarea")) return;
  const sections = [...document.querySelectorAll("main section[id]")];
  const next = sections.find((section) => section.getBoundingClientRect().top > 80);
  const before = sections.filter((section) => section.getBoundingClientRect().top < 40).at(-1);
  switch (event.key) {
    case "j":
      return go(next);
    case "k":
      return before ? go(before) : window.scrollTo(0, 0);
    case "t":
      return themed.click();
    case "?":
      return help.showModal();
  }
}

function dress(wanted: Theme): void {
  theme = wanted;
  if (wanted === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = wanted;
  themed.textContent = { auto: "◐", light: "○", dark: "●" }[wanted];
  themed.setAttribute("aria-label", `Colours: ${wanted}`);
  themed.setAttribute("data-tip", `Colours: ${wanted === "auto" ? "as the system has them" : wanted}`);
  try {
    localStorage.setItem(KEPT, wanted);
  } catch {
    // A page opened from a file may have no storage; the theme is not remembered then.
  }
}

function remembered(): Theme {
  try {
    return THEMES.find((each) => each === localStorage.getItem(KEPT)) ?? "auto";
  } catch {
    return "auto";
  }
}
