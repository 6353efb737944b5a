// The theme loads the index of the search with each page. The index is larger than a page, so this script lets it wait
// for the first action of the reader. A search that the reader opens before the index is there opens when it is.
{
  // A "scroll" is no action: the theme scrolls the menu to the page's entry.
  const ACTIONS = ["keydown", "pointerdown", "pointermove", "wheel"];
  const MOST_FRAMES = 600;
  let isWanted = false;
  let act;
  const acted = new Promise((resolve) => (act = resolve));
  const note = (event) => {
    isWanted ||= event.target.closest?.(".md-search__button") || (event.key === "k" && (event.ctrlKey || event.metaKey));
    act();
  };
  for (const kind of ACTIONS) addEventListener(kind, note, true);

  // The theme builds the search in a shadow tree of its own, some frames after the index has come.
  const openIfWanted = (frame) => {
    const search = [...document.body.children].find((child) => child.shadowRoot)?.shadowRoot.querySelector("dialog");
    if (!search && frame < MOST_FRAMES) {
      requestAnimationFrame(() => openIfWanted(frame + 1));
      return;
    }
    for (const kind of ACTIONS) removeEventListener(kind, note, true);
    if (isWanted && search?.inert) document.querySelector(".md-search__button").click();
  };

  const { open, send } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    this.isSearchIndex = new URL(url, location.href).pathname.endsWith("/search.json");
    return open.call(this, method, url, ...rest);
  };
  XMLHttpRequest.prototype.send = function (...body) {
    if (!this.isSearchIndex) {
      send.apply(this, body);
      return;
    }
    this.addEventListener("load", () => openIfWanted(0));
    acted.then(() => send.apply(this, body));
  };
}
