// Tooltips with exact values, at the pointer or the focus, for all elements with `data-tip`.

import { h } from "./dom";

const box = h("div", { id: "tip", role: "status", hidden: true });

/** Registers the listeners, once for the lifetime of the page. */
export function listen(): void {
  document.body.append(box);
  document.addEventListener("pointermove", (event) => {
    const found = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    if (found) show(found.getAttribute("data-tip") ?? "", event.clientX, event.clientY);
    else if (!document.activeElement?.matches("[data-tip]:focus-visible")) hide();
  });
  document.addEventListener("focusin", (event) => {
    if (!(event.target instanceof Element) || !event.target.matches("[data-tip]:focus-visible")) return;
    const place = event.target.getBoundingClientRect();
    show(event.target.getAttribute("data-tip") ?? "", place.left + Math.min(place.width / 2, 240), place.top);
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.addEventListener("scroll", hide, { passive: true });
}

/** Shows the tooltip at a position in the window. */
export function show(text: string, x: number, y: number): void {
  if (!text) return hide();
  box.textContent = text;
  box.hidden = false;
  const room = document.documentElement.clientWidth - box.offsetWidth - 8;
  box.style.left = `${Math.max(8, Math.min(x + 12, room))}px`;
  const above = y - box.offsetHeight - 12;
  box.style.top = `${above > 8 ? above : y + 18}px`;
}

/** Hides the tooltip. */
export function hide(): void {
  box.hidden = true;
}
