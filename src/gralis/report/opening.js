// The top of the page: five answers, the two inputs that are compared, what to beware of, and how to read the rest.
"use strict";

function showOpening(content) {
  document.getElementById("title").textContent = content.title;
  replace("answers", ...content.answers.map(({ id, question, answer }) => make("div", { "data-answer": id }, make("dt", {}, question), make("dd", {}, answer))));
  showEnds(content);
  const { noun } = content.features, opposed = content.disagreement_sentences;
  document.getElementById("disagreements").hidden = !opposed.length;
  replace("disagreements-list", ...opposed.map((sentence) => make("li", {}, sentence)));
  document.getElementById("disagreements-meaning").textContent =
    `Such a ${noun} does one thing while few others are there, and the opposite once all are. Do not quote one of the two numbers alone.`;
  document.getElementById("doubts").hidden = !content.doubts.length;
  replace("doubts-list", ...content.doubts.map((doubt) => make("li", {}, doubt)));
  const remarks = document.getElementById("remarks");
  remarks.hidden = !content.remarks.length;
  remarks.append(...content.remarks.map((remark) => make("li", {}, remark)));
}

// The input beside the baseline, with the output for each.
function showEnds({ prediction, picture }) {
  const card = (title, source, value) => make("figure", {},
    source ? make("img", { src: source, alt: title }) : null,
    make("figcaption", {}, make("strong", {}, title), ` output ${number(value)}`));
  replace("ends", card("This input:", picture.pixels, prediction.f_x), card("The baseline:", picture.baseline, prediction.f_baseline));
  document.getElementById("ends").classList.toggle("words-only", !picture.pixels);
}

// For a reader without statistics; each colour has this meaning on the whole page.
function showReading({ features, prediction, picture, methods }) {
  const { noun } = features, key = (kind) => make("span", { class: `key ${kind}`, "aria-hidden": "true" });
  const exact = methods[0].exact;
  const items = [
    [key("for"), `Red: this ${noun}, being as it is, raises the output.`],
    [key("against"), `Blue: it lowers the output. The stronger the colour, or the longer the bar, the more.`],
    exact ? null : [key("unsure"), `Hatched, or a line that crosses zero: it may do either. Do not rely on its direction.`],
    exact ? null : [make("strong", {}, "± "), `How far off a number may be. In ${percent(prediction.level)} of such pages all numbers are within their ± at once.`],
    picture.regions ? [make("strong", {}, "7 "), `A number on the picture is the number in the ${noun}'s name: 7 is ${noun} 7, here and in each table and file.`] : null,
    [make("strong", {}, "Compared "), "Each number says what changes between the baseline and this input. It says nothing about other inputs."],
  ];
  replace("reading-list", ...items.filter(Boolean).map((parts) => make("li", {}, ...parts)));
}
