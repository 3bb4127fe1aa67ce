// Light or dark: as the system says until the button is pressed.
"use strict";

// `changed` is called after the colours have changed.
function wireTheme(changed = () => {}) {
  const dark = window.matchMedia("(prefers-color-scheme: dark)"), button = document.getElementById("theme");
  const set = (on) => {
    document.documentElement.dataset.theme = on ? "dark" : "light";
    button.textContent = on ? "Light" : "Dark";
    button.setAttribute("aria-pressed", String(on));
    button.setAttribute("aria-label", on ? "Switch to light colours" : "Switch to dark colours");
    changed();
  };
  set(dark.matches);
  dark.addEventListener("change", () => set(dark.matches));
  button.addEventListener("click", () => set(document.documentElement.dataset.theme !== "dark"));
  document.getElementById("print").addEventListener("click", () => window.print());
}
