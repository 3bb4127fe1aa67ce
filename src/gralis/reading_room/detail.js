// One input: its numbers, its largest features, what to beware of, the way to its report, and a note.
"use strict";

const detail = { chosen: null };

function openCase(i, focus = false) {
  detail.chosen = i;
  for (const element of list.elements.values()) element.setAttribute("aria-selected", String(Number(element.dataset.case) === i));
  showDetail(i);
  if (focus) document.getElementById("detail").focus();
}

function showDetail(i) {
  const failed = cases.failure[i] !== null, parts = [make("h3", {}, cases.id[i])];
  if (cases.thumb[i]) parts.push(make("img", { src: cases.thumb[i], alt: "The input", class: "portrait" }));
  if (failed) parts.push(make("p", { class: "box" }, cases.failure[i]));
  else {
    parts.push(make("p", {}, ...predictionOf(i)));
    const reach = 1.03 * Math.max(...cases.top[i].map(([, value, half]) => Math.abs(value) + (known(half) ? half : 0))) || 1;
    parts.push(make("table", { class: "bars" }, make("caption", { class: "missing" }, `The largest features; lines and ± hold for all features of this input (${percent(cases.head.level)}).`),
      make("tbody", {}, ...cases.top[i].map(([name, value, half]) => make("tr", {}, make("td", {}, name), make("td", { class: "bar-cell" }, bar(value, half, -reach, reach)),
        make("td", { class: `right ${tone(value, half)}` }, `${signed(value)}${margin(half)}`))))));
    const facts = [["Output less that of the baseline", signed(cases.delta[i])], ["Widest ±", number(cases.width[i], 2)], ["Not in the sum of the values (residual)", signed(cases.residual[i])],
      ["Opposite signs (φ and Shapley)", cases.opposed[i] === null ? "not known" : cases.opposed[i].join(", ") || "none"]];
    parts.push(make("dl", { class: "facts" }, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])));
    parts.push(...cases.doubts[i].map((doubt) => make("p", { class: "box" }, `Doubt: ${doubt}`)));
  }
  if (cases.report[i]) parts.push(make("p", {}, make("a", { href: cases.report[i], class: "button", id: "open-report" }, "Open the full report")));
  else if (!failed) parts.push(make("p", { class: "missing" }, "There is no full report: the run kept no explanation of this input (ledgers=True keeps them)."));
  parts.push(make("label", { for: "note" }, "Note"),
    make("textarea", { id: "note", rows: 3, oninput: (event) => notes.set(i, event.target.value) }));
  replace("detail", ...parts);
  document.getElementById("note").value = notes.get(i);
}

function wireDetail() {
  document.getElementById("detail").addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    goTo(list.at);
  });
}
