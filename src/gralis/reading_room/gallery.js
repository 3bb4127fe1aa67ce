// The page: questions, filters, and what happens when they change.
"use strict";

function options(id, choices, set) {
  const select = document.getElementById(id);
  select.replaceChildren(...choices.map(([value, text]) => make("option", { value }, text)));
  select.addEventListener("change", () => { set(select.value); refresh(); });
}

function distinct(column) {
  const counts = new Map();
  for (const value of column) if (value !== null) counts.set(value, (counts.get(value) || 0) + 1);
  return [[ANY, "any"], ...Array.from(counts).sort((a, b) => (a[0] < b[0] ? -1 : 1)).map(([value, count]) => [value, `${value} (${count})`])];
}

let drawing = null;
function refresh() {
  showList(listed());
  const [, , meaning] = QUESTIONS[choice.question];
  document.getElementById("meaning").textContent = choice.question === "all" ? "" : `${meaning()} ${list.shown.length.toLocaleString("en")} found.`;
  for (const button of document.querySelectorAll("#questions button")) button.setAttribute("aria-pressed", String(button.dataset.question === choice.question));
  document.getElementById("feature-choice").hidden = choice.question !== "decides" || Boolean(cases.head.everyone.missing);
  clearTimeout(drawing); // the dots follow when the list stands still
  drawing = setTimeout(drawBeeswarm, 150);
}

function wireQuestions() {
  const names = cases.head.everyone.missing ? [] : cases.head.everyone.names;
  choice.feature = names[0] ?? ANY;
  const buttons = Object.entries(QUESTIONS).map(([key, [text]]) => make("button", { type: "button", "data-question": key, "aria-pressed": "false",
    onclick: () => { choice.question = key; refresh(); } }, text));
  replace("questions", ...buttons, make("label", { id: "feature-choice", hidden: true }, "Feature ", make("select", { id: "feature", onchange: (event) => { choice.feature = event.target.value; refresh(); } },
    ...names.map((name) => make("option", { value: name }, name)))));
}

function wireFilters() {
  options("by-class", distinct(cases.class), (value) => { choice.class = value; });
  options("by-label", distinct(cases.label), (value) => { choice.label = value; });
  options("by-right", [[ANY, "any"], ["true", "right"], ["false", "wrong"], ["null", "not known"]], (value) => { choice.right = value; });
  options("by-state", [[ANY, "any"], ...Object.entries(STATES).map(([key, [text]]) => [key, text])], (value) => { choice.state = value; });
  options("sort", Object.entries(SORTS).map(([key, [text]]) => [key, text]), (value) => { choice.sort = value; });
  const query = document.getElementById("query");
  query.addEventListener("input", () => { choice.query = query.value; refresh(); });
  document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("reset").addEventListener("click", () => {
    Object.assign(choice, { query: "", class: ANY, label: ANY, right: ANY, state: ANY, question: "all", sort: "order" });
    query.value = "";
    for (const [id, value] of [["by-class", ANY], ["by-label", ANY], ["by-right", ANY], ["by-state", ANY], ["sort", "order"]]) document.getElementById(id).value = value;
    refresh();
  });
}

async function start() {
  wireTheme(() => { if (cases.head) drawBeeswarm(); });
  const loading = document.getElementById("loading");
  try {
    await readAll((done, all) => { loading.textContent = `Reading the data: ${done} of ${all} parts …`; });
  } catch (error) {
    loading.textContent = `The gallery is not complete: ${error.message}. Keep its folder together.`;
    document.body.dataset.busy = "false";
    return;
  }
  loading.textContent = "";
  const { head } = cases, wrong = cases.right.filter((right) => right === false).length;
  document.getElementById("title").textContent = head.title;
  document.getElementById("about").textContent = [`${head.n.toLocaleString("en")} inputs`, `${head.n_failures} failed`, head.is_predicted && cases.right.some((right) => right !== null) ? `${wrong} predicted wrongly` : null,
    `${head.n_reports} with a full report`].filter(Boolean).join(", ") + `. Explained: ${head.target === "predicted" ? "the predicted class of each" : head.target === "label" ? "the class of each label" : head.target ?? "the output"}.`;
  document.getElementById("footer").textContent = `Made by gralis ${head.gralis}. This folder is complete: it loads nothing from elsewhere and sends nothing. Schema ${head.schema}.`;
  wireQuestions();
  wireFilters();
  wireList();
  wireDetail();
  wireNotes();
  showGroups();
  refresh();
  if (list.shown.length) openCase(list.shown[0]);
  document.body.dataset.busy = "false";
}

start();
