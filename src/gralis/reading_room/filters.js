// Which inputs are listed, and in which order.
"use strict";

const ANY = "";
const choice = { query: "", class: ANY, label: ANY, right: ANY, state: ANY, feature: ANY, question: "all", sort: "order" };

const STATES = {
  usable: ["usable", (i) => cases.failure[i] === null && !uncertain(i)],
  uncertain: ["too uncertain to use", uncertain],
  doubted: ["with doubts", (i) => cases.doubts[i].length > 0],
  opposed: ["methods disagree in sign", (i) => Boolean(cases.opposed[i] && cases.opposed[i].length)],
  noted: ["with a note", (i) => Boolean(notes.get(i))],
  failed: ["failed", (i) => cases.failure[i] !== null],
};

const size = (column) => (i) => (known(column[i]) ? -Math.abs(column[i]) : Infinity);
const SORTS = {
  order: ["order of the inputs", (i) => i],
  name: ["name", null],
  output: ["output, largest first", (i) => (known(cases.output[i]) ? -cases.output[i] : Infinity)],
  delta: ["difference, largest first", (i) => size(cases.delta)(i)],
  strongest: ["largest value first", (i) => (cases.top[i].length ? -Math.abs(cases.top[i][0][1]) : Infinity)],
  width: ["widest ± first", (i) => size(cases.width)(i)],
  narrow: ["narrowest ± first", (i) => (known(cases.width[i]) ? Math.abs(cases.width[i]) : Infinity)],
  residual: ["largest residual first", (i) => size(cases.residual)(i)],
  opposed: ["most sign disagreements first", (i) => (cases.opposed[i] ? -cases.opposed[i].length : Infinity)],
};

// What the preset questions ask; each is a test of one input, and a sentence that says which.
function sureFrom() {
  const outputs = (wanted) => cases.output.filter((value, i) => known(value) && (wanted === null || cases.right[i] === wanted)).sort((a, b) => a - b);
  const right = outputs(true), from = right.length ? right : outputs(null);
  return from.length ? from[Math.floor(from.length / 4)] : Infinity;
}

const QUESTIONS = {
  all: ["All inputs", () => () => true, () => ""],
  wrong: ["Wrong, but sure", () => { const least = sureFrom(); return (i) => cases.right[i] === false && cases.output[i] >= least; },
    () => (cases.head.is_predicted ? `Wrong predictions whose output is at least ${number(sureFrom())}; the outputs of a quarter of the right ones are smaller.`
      : "Whether a prediction is right is not known: run explain_many with target=\"predicted\" and with labels.")],
  decides: ["Where does one feature decide?", () => { const name = choice.feature; return (i) => strongestOf(i) === name && cases.sure[i] === true; },
    () => (cases.head.everyone.missing ? `The inputs have different features. ${cases.head.everyone.missing}` : `Inputs in which ${choice.feature} has the largest value, and its sign is certain.`)],
  uncertain: ["Too uncertain to use", () => uncertain,
    () => "The sign of the largest value is not certain, or the widest ± exceeds the whole difference, or a check raised a doubt."],
  opposed: ["Methods disagree", () => STATES.opposed[1],
    () => (cases.opposed.some((each) => each !== null) ? "A feature has a φ and a Shapley value with opposite signs, beyond the errors of both." : "Not known for this run: it kept no explanations (ledgers=True keeps them).")],
  failed: ["Failed", () => STATES.failed[1], () => "Inputs that could not be explained, each with the reason."],
};

function listed() {
  const asked = QUESTIONS[choice.question][1](), state = choice.state === ANY ? () => true : STATES[choice.state][1];
  const query = choice.query.trim().toLowerCase(), found = [];
  for (let i = 0; i < cases.count; i++) {
    if (choice.class !== ANY && cases.class[i] !== choice.class) continue;
    if (choice.label !== ANY && cases.label[i] !== choice.label) continue;
    if (choice.right !== ANY && String(cases.right[i]) !== choice.right) continue;
    if (query && !cases.id[i].toLowerCase().includes(query)) continue;
    if (asked(i) && state(i)) found.push(i);
  }
  const key = SORTS[choice.sort][1];
  if (choice.sort === "name") found.sort((a, b) => (cases.id[a] < cases.id[b] ? -1 : cases.id[a] > cases.id[b] ? 1 : 0));
  else if (choice.sort !== "order") {
    const keys = new Float64Array(cases.count);
    for (const i of found) keys[i] = key(i);
    found.sort((a, b) => keys[a] - keys[b] || a - b);
  }
  return found;
}
