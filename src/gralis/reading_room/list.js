// The list: only the rows that can be seen are elements of the page, however many inputs there are.
"use strict";

const OVERSCAN = 6, PRINTED = 60;
const list = { shown: [], at: 0, height: 92, elements: new Map(), waiting: false, pictured: false, printing: false };

function listBox() { return document.getElementById("list"); }

// Show these inputs, from the top, or with `stay` where the list was.
function showList(shown, stay = false) {
  list.shown = shown;
  list.at = Math.min(list.at, Math.max(shown.length - 1, 0));
  if (!stay) { list.at = 0; listBox().scrollTop = 0; }
  list.height = parseFloat(getComputedStyle(listBox()).getPropertyValue("--row")) || 92;
  document.getElementById("spacer").style.height = `${shown.length * list.height}px`;
  listBox().setAttribute("aria-rowcount", String(shown.length));
  for (const element of list.elements.values()) element.remove();
  list.elements.clear();
  document.getElementById("list-title").textContent = `${shown.length.toLocaleString("en")} of ${cases.count.toLocaleString("en")} inputs`;
  document.getElementById("nothing").hidden = shown.length > 0;
  paintRows();
}

function paintRows() {
  list.waiting = false;
  if (list.printing) return; // all rows that go to paper are there
  const box = listBox(), first = Math.max(0, Math.floor(box.scrollTop / list.height) - OVERSCAN);
  const last = Math.min(list.shown.length, Math.ceil((box.scrollTop + box.clientHeight) / list.height) + OVERSCAN);
  for (const [place, element] of list.elements) {
    if (place < first || place >= last) { element.remove(); list.elements.delete(place); }
  }
  for (let place = first; place < last; place++) {
    if (list.elements.has(place)) continue;
    const element = rowOf(place);
    element.style.top = `${place * list.height}px`;
    list.elements.set(place, element);
    document.getElementById("spacer").append(element);
  }
}

function flagsOf(i) {
  const flags = [];
  if (cases.failure[i] !== null) flags.push("failed");
  else if (uncertain(i)) flags.push("uncertain");
  if (cases.doubts[i].length) flags.push("doubts");
  if (cases.opposed[i] && cases.opposed[i].length) flags.push("methods disagree");
  if (notes.get(i)) flags.push("note");
  return flags.map((text) => make("span", { class: "flag" }, text));
}

// The prediction in words: the class if there is one, the label, and whether they agree.
function predictionOf(i) {
  const verdict = cases.right[i] === true ? "right" : cases.right[i] === false ? "wrong" : "";
  return [make("span", { class: "strong" }, cases.class[i] ?? "output"), " ", make("span", { class: "detail" }, `output ${number(cases.output[i])}`), " ",
    cases.label[i] === null ? null : make("span", { class: "detail" }, verdict === "right" ? "right" : `${verdict ? "wrong, " : ""}label ${cases.label[i]}`)];
}

function rowOf(place) {
  const i = list.shown[place], failed = cases.failure[i] !== null;
  const cell = (kind, ...parts) => make("div", { role: "gridcell", class: `cell ${kind}` }, ...parts);
  const most = cases.top[i].length ? Math.max(...cases.top[i].map(([, value]) => Math.abs(value))) : 1;
  const bars = cases.top[i].slice(0, 3).map(([name, value, half]) => make("div", { class: "mini" }, make("span", { class: "mini-name" }, name),
    bar(value, null, -most, most), make("span", { class: `mini-value ${tone(value, half)}` }, signed(value))));
  return make("div", { role: "row", class: "case", "data-place": place, "data-case": i, tabindex: place === list.at ? "0" : "-1", "aria-rowindex": place + 1,
    "aria-selected": String(i === detail.chosen), onclick: () => { list.at = place; openCase(i); }, onfocus: () => { list.at = place; } },
  list.pictured ? cell("thumb", cases.thumb[i] ? make("img", { src: cases.thumb[i], alt: "", loading: "lazy" }) : null) : null,
  cell("name", make("span", { class: "strong" }, cases.id[i]), make("span", { class: "detail flags" }, ...flagsOf(i))),
  cell("prediction", ...(failed ? [] : predictionOf(i))),
  cell("features", ...(failed ? [make("span", { class: "detail" }, cases.failure[i])] : bars)),
  cell("numbers", ...(failed ? [] : [make("span", { class: "detail" }, `widest ± ${number(cases.width[i], 2)}`), make("span", { class: "detail" }, `residual ${signed(cases.residual[i])}`),
    cases.report[i] ? make("a", { href: cases.report[i], tabindex: "-1", "aria-label": `Report of ${cases.id[i]}`, onclick: (event) => event.stopPropagation() }, "Report") : null])));
}

function goTo(place) {
  if (!list.shown.length) return;
  list.at = Math.max(0, Math.min(place, list.shown.length - 1));
  const box = listBox(), top = list.at * list.height;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + list.height > box.scrollTop + box.clientHeight) box.scrollTop = top + list.height - box.clientHeight;
  paintRows();
  for (const [at, element] of list.elements) element.setAttribute("tabindex", at === list.at ? "0" : "-1");
  list.elements.get(list.at).focus({ preventScroll: true });
}

function wireList() {
  const box = listBox();
  list.pictured = cases.thumb.some(Boolean);
  box.classList.toggle("pictured", list.pictured);
  box.append(make("p", { id: "nothing", class: "missing", hidden: true }, "No input fits."), make("div", { id: "spacer", role: "rowgroup" }));
  box.addEventListener("scroll", () => { if (!list.waiting) { list.waiting = true; requestAnimationFrame(paintRows); } });
  box.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(box.clientHeight / list.height) - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page }[event.key];
    if (step) goTo(list.at + step);
    else if (event.key === "Home") goTo(0);
    else if (event.key === "End") goTo(list.shown.length - 1);
    else if (event.key === "Enter" && event.target.classList.contains("case")) openCase(list.shown[list.at], true);
    else if (event.key.toLowerCase() === "n" && event.target.classList.contains("case")) { openCase(list.shown[list.at]); document.getElementById("note").focus(); }
    else return;
    event.preventDefault();
  });
  new ResizeObserver(() => {
    const height = parseFloat(getComputedStyle(box).getPropertyValue("--row"));
    if (height && height !== list.height) showList(list.shown, true);
    else paintRows();
  }).observe(box);
  window.addEventListener("beforeprint", () => {
    list.printing = true;
    const count = Math.min(list.shown.length, PRINTED), more = document.getElementById("more-printed");
    for (let place = 0; place < count; place++) if (!list.elements.has(place)) { const element = rowOf(place); list.elements.set(place, element); }
    document.getElementById("spacer").replaceChildren(...Array.from({ length: count }, (_, place) => list.elements.get(place)));
    more.hidden = list.shown.length <= count;
    more.textContent = `${(list.shown.length - count).toLocaleString("en")} more are in the file.`;
  });
  window.addEventListener("afterprint", () => { list.printing = false; document.getElementById("more-printed").hidden = true; showList(list.shown, true); });
}
