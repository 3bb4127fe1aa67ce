// A note per input, kept by the browser on this machine, and exported as CSV.
"use strict";

const notes = {
  kept: {},
  works: true,
  key: () => `gralis-gallery-${cases.head.run}`,
  get(i) { return (Object.hasOwn(this.kept, cases.id[i]) ? this.kept[cases.id[i]] : "") || ""; },
  set(i, text) {
    if (text) this.kept[cases.id[i]] = text;
    else delete this.kept[cases.id[i]];
    this.save();
    const place = list.shown.indexOf(i), old = list.elements.get(place);
    if (old) old.querySelector(".flags").replaceChildren(...flagsOf(i));
  },
  read() {
    try { this.kept = Object.assign(Object.create(null), JSON.parse(localStorage.getItem(this.key()) || "{}")); } catch { this.works = false; }
    this.tell();
  },
  save() {
    try { localStorage.setItem(this.key(), JSON.stringify(this.kept)); } catch { this.works = false; }
    this.tell();
  },
  tell() {
    const count = Object.keys(this.kept).length;
    document.getElementById("notes-state").textContent = this.works ? `${count} note${count === 1 ? "" : "s"}, kept in this browser.`
      : `${count} notes. This browser keeps nothing for pages from disk: save the notes before you leave.`;
  },
};

function caseRow(i) {
  return [cases.id[i], cases.class[i], cases.label[i], cases.right[i] === null ? "" : String(cases.right[i]), cases.output[i], cases.delta[i], cases.width[i], cases.residual[i],
    strongestOf(i), cases.top[i].length ? cases.top[i][0][1] : "", (cases.opposed[i] || []).join("; "), cases.failure[i], notes.get(i)];
}

const CASE_HEAD = ["input", "class", "label", "right", "output", "difference", "widest_half_width", "residual", "strongest_feature", "strongest_phi", "opposite_signs", "failure", "note"];

function wireNotes() {
  notes.read();
  document.getElementById("export-list").addEventListener("click", () => download("list.csv", csvText([CASE_HEAD, ...list.shown.map(caseRow)]), "text/csv"));
  document.getElementById("export-notes").addEventListener("click", () => {
    const noted = cases.id.map((_, i) => i).filter((i) => notes.get(i));
    download("notes.csv", csvText([CASE_HEAD, ...noted.map(caseRow)]), "text/csv");
  });
}
