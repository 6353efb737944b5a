// Creates elements. Text is always inserted as text; no function here passes markup to the browser.

export type Child = Node | string | number | null | undefined | false | readonly Child[];

type Value = string | number | boolean | null | undefined | ((event: never) => void);
export type Attributes = Readonly<Record<string, Value>>;

const SVG = "http://www.w3.org/2000/svg";

/** Creates an HTML element. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return furnish(document.createElement(tag), attributes, children);
}

/** Creates an SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return furnish(document.createElementNS(SVG, tag) as SVGElementTagNameMap[K], attributes, children);
}

function furnish<E extends Element>(element: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

function add(element: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(element, child);
    else element.append(typeof child === "number" ? String(child) : (child as Node | string));
  }
}

/** Positions an element inside the box of its chart, in percent. */
export function at(element: HTMLElement, left: number, top?: number): HTMLElement {
  element.style.left = `${left.toFixed(3)}%`;
  if (top !== undefined) element.style.top = `${top.toFixed(3)}%`;
  return element;
}

/** A section with a heading, which is also its name in the index of the page. */
export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  return h("section", { id, "aria-label": title }, h("h2", {}, title), ...children);
}

/** Gives a section another name in the index; an empty name removes it from the index. */
export function indexed(element: HTMLElement, name: string): HTMLElement {
  element.dataset["index"] = name;
  return element;
}

const MOST_BUTTONS = 6;

/** A choice of one name: a row of buttons, or a list where there are many names. */
export function choice(
  label: string,
  names: readonly string[],
  chosen: number,
  choose: (index: number) => void,
): HTMLElement {
  if (names.length > MOST_BUTTONS) {
    const list: HTMLSelectElement = h("select", { "aria-label": label, onchange: () => choose(list.selectedIndex) });
    list.append(...names.map((name) => h("option", {}, name)));
    list.selectedIndex = chosen;
    return list;
  }
  const buttons = names.map((name, index) =>
    h(
      "button",
      { type: "button", "aria-pressed": index === chosen ? "true" : "false", onclick: () => pick(index) },
      name,
    ),
  );
  const pick = (index: number): void => {
    buttons.forEach((button, other) => button.setAttribute("aria-pressed", other === index ? "true" : "false"));
    choose(index);
  };
  return h("div", { class: "choice", role: "group", "aria-label": label }, buttons);
}

/** A legend of colours. */
export function legend(entries: readonly (readonly [kind: string, name: string, tip?: string])[]): HTMLElement {
  return h(
    "ul",
    { class: "legend" },
    entries.map(([kind, name, tip]) => h("li", { "data-tip": tip }, h("i", { class: kind }), name)),
  );
}
