// A group of rows with a single tab stop, in which the arrow keys move from row to row.

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

/** Makes the elements of `group` that match `selector` the rows of such a group, in the order of the page. */
export function roving<E extends HTMLElement>(group: E, selector: string): E {
  const rows = [...group.querySelectorAll<HTMLElement | SVGElement>(selector)];
  rows.forEach((row, index) => row.setAttribute("tabindex", index ? "-1" : "0"));
  group.addEventListener("keydown", (event) => {
    const by = STEPS[event.key];
    const now = rows.findIndex((row) => row.contains(event.target as Node));
    if (by === undefined || now < 0) return;
    // Folded rows are skipped.
    let next = now + by;
    while (rows[next] && !rows[next]?.getClientRects().length) next += by;
    const row = rows[next];
    if (!row) return;
    event.preventDefault();
    rows[now]?.setAttribute("tabindex", "-1");
    row.setAttribute("tabindex", "0");
    row.focus();
  });
  return group;
}
