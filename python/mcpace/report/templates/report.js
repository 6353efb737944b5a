"use strict";
// Only comfort: exact values at the pointer or the focus, and a choice among the calls. Without it all is on the page.
(function () {
  const tip = document.getElementById("tip");

  // An SVG title shows late and never on focus: its text moves into an attribute that we show ourselves.
  for (const title of document.querySelectorAll("svg title")) {
    title.parentNode.setAttribute("data-tip", title.textContent);
    title.remove();
  }

  function show(text, x, y) {
    tip.textContent = text;
    tip.hidden = false;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(8, Math.min(x + 12, room)) + "px";
    const above = y - tip.offsetHeight - 12;
    tip.style.top = (above > 8 ? above : y + 18) + "px";
  }

  function hide() {
    tip.hidden = true;
  }

  document.addEventListener("pointermove", function (event) {
    const target = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    if (target) show(target.getAttribute("data-tip"), event.clientX, event.clientY);
    else if (!document.activeElement.matches("svg:focus-visible")) hide();
  });
  document.addEventListener("focusin", function (event) {
    if (!event.target.matches("svg[aria-label]:focus-visible")) return;
    const box = event.target.getBoundingClientRect();
    show(event.target.getAttribute("aria-label"), box.left, box.top);
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape") hide();
  });
  document.addEventListener("scroll", hide, { passive: true });

  const choice = document.getElementById("choose");
  if (choice) {
    const panels = document.querySelectorAll(".panel");
    const choose = function () {
      for (const panel of panels) panel.hidden = panel.id !== choice.value;
    };
    choice.addEventListener("change", choose);
    choose();
  }
  document.documentElement.classList.add("scripted");
})();
