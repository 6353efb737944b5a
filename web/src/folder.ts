// The runs of a folder, those in progress first. Any two can be compared.

import type { Entry, Listing } from "./page.gen";
import { h, section, type Child } from "./dom";
import { when } from "./run";

/** The list of runs. */
export function folder(told: Listing): Child[] {
  const chosen: string[] = [];
  const compare = h("a", { class: "compare", "aria-disabled": "true" }, "Choose two to compare");
  const choose = (id: string, on: boolean, box: HTMLInputElement): void => {
    if (on) chosen.push(id);
    else chosen.splice(chosen.indexOf(id), 1);
    if (chosen.length > 2) {
      const dropped = chosen.shift();
      const other = box
        .closest("section")
        ?.querySelector<HTMLInputElement>(`input[value="${CSS.escape(dropped ?? "")}"]`);
      if (other) other.checked = false;
    }
    const ready = chosen.length === 2;
    compare.textContent = ready ? "Compare the two" : "Choose two to compare";
    compare.setAttribute("aria-disabled", String(!ready));
    if (ready) compare.setAttribute("href", `#/compare/${chosen.map(encodeURIComponent).join("/")}`);
    else compare.removeAttribute("href");
  };
  const rows = told.entries.map((entry) => ({ entry, element: row(entry, choose) }));
  const filter = h("input", {
    type: "search",
    placeholder: "Filter",
    "aria-label": "Filter runs",
    oninput: () => {
      const wanted = filter.value.toLowerCase();
      for (const { entry, element } of rows) element.hidden = !text(entry).includes(wanted);
    },
  });
  return [
    told.flights.length ? flights(told.flights) : null,
    section(
      "runs",
      "Runs",
      h("div", { class: "controls staying" }, h("code", {}, told.folder), filter, compare),
      rows.length
        ? h(
            "ul",
            { class: "runs" },
            rows.map((each) => each.element),
          )
        : empty(),
      told.left_out ? h("p", { class: "said" }, `${told.left_out} older files are not listed.`) : null,
    ),
  ];
}

/** The servers behind the flight recorder, those in use first. */
function flights(entries: readonly Entry[]): HTMLElement {
  return section(
    "flights",
    "Servers of your hosts",
    h(
      "p",
      { class: "said" },
      "The newest recording of each server that ",
      h("code", {}, "mcpace wrap"),
      " has wrapped.",
    ),
    h(
      "ul",
      { class: "runs" },
      entries.map((entry) => flight(entry)),
    ),
  );
}

function flight(entry: Entry): HTMLElement {
  const told = entry.head;
  if (!told) return unreadable(entry);
  const live = entry.state === "live";
  return h(
    "li",
    { class: entry.state },
    h("span", live ? { class: "pulse", "data-tip": "in use" } : {}),
    h(
      "div",
      { class: "dated" },
      h("time", {}, when(told.started)),
      h("span", { class: "tag" }, live ? "in use" : "ended"),
    ),
    h(
      "div",
      {},
      h("a", { href: `#/flight/${encodeURIComponent(entry.id)}` }, told.subjects),
      told.verdict.map((sentence) => h("p", {}, sentence)),
      h("p", { class: "facts" }, h("code", {}, told.targets)),
    ),
  );
}

function unreadable(entry: Entry): HTMLElement {
  return h(
    "li",
    { class: "unreadable" },
    h("span", {}),
    h("div", { class: "dated" }),
    h("div", {}, h("b", {}, entry.id), h("p", {}, entry.reason)),
  );
}

function empty(): HTMLElement {
  return h(
    "p",
    { class: "lead" },
    "There are no runs here yet. Every experiment saves one with ",
    h("code", {}, "--out FILE"),
    "; while it goes on it is seen here, too.",
  );
}

function row(entry: Entry, choose: (id: string, on: boolean, box: HTMLInputElement) => void): HTMLElement {
  const told = entry.head;
  if (!told) return unreadable(entry);
  const live = entry.state === "live";
  const box = h("input", {
    type: "checkbox",
    value: entry.id,
    "aria-label": `Choose ${entry.id}`,
    onchange: () => choose(entry.id, box.checked, box),
  });
  return h(
    "li",
    { class: entry.state },
    live ? h("span", { class: "pulse", "data-tip": "in progress" }) : box,
    h(
      "div",
      { class: "dated" },
      h("time", {}, when(told.started)),
      h("span", { class: "tag" }, told.kind),
      told.partial && !live ? h("span", { class: "tag medium" }, "interrupted") : null,
    ),
    h(
      "div",
      {},
      h("a", { href: `#/${live ? "live" : "run"}/${encodeURIComponent(entry.id)}` }, told.verdict[0] ?? entry.id),
      h(
        "p",
        { class: "facts" },
        h("span", {}, told.subjects),
        told.targets ? h("span", {}, `at ${told.targets}`) : null,
        h("code", {}, entry.id),
      ),
    ),
  );
}

function text(entry: Entry): string {
  const told = entry.head;
  return [entry.id, told?.kind, told?.subjects, told?.targets, told?.started, ...(told?.verdict ?? [])]
    .join(" ")
    .toLowerCase();
}
