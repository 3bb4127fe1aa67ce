// The page: what it shows, what is chosen, and the arithmetic that runs beside it.
"use strict";

const CONTENT = JSON.parse(document.getElementById("gralis-report").textContent);
const NOUN = CONTENT.features.noun;
const state = { method: "gralis", sigma: null, chosen: 0, pointed: null, recomputed: null, request: 0 };
const pictures = [];

// The numbers of the method, and the sigma, that are shown now.
function shownNow() {
  const method = CONTENT.methods.find((each) => each.id === state.method), isExplained = state.method === "gralis";
  const from = isExplained && state.recomputed ? state.recomputed
    : { values: method.values, stderr: method.stderr, half: method.half_width, sum: method.sum, exact: method.exact, how: method.method };
  const order = from.values.map((v, i) => i).sort((a, b) => Math.abs(from.values[b]) - Math.abs(from.values[a]) || a - b);
  const bars = from.exact ? "no error above rounding" : `lines and ±: ${percent(CONTENT.prediction.level)} intervals that hold for all together`;
  const sigma = isExplained && CONTENT.kernel.type !== "other" ? `, ${sigmaWords(currentSigma())}` : "";
  return { ...from, isExplained, order, sigma: isExplained ? state.sigma : null, caption: `${method.name}${sigma}; ${bars}.` };
}

function explainedSigma() {
  return CONTENT.kernel.type === "gaussian" ? CONTENT.kernel.sigma : CONTENT.kernel.type === "uniform" ? Infinity : null;
}

function currentSigma() { return state.sigma === null ? explainedSigma() : state.sigma; }

function sigmaWords(sigma) {
  return sigma === null ? "another kind of kernel" : sigma === Infinity ? "σ = ∞ (uniform)" : `σ = ${number(sigma)}`;
}

// The features that act together with one, strongest evidence first. Pairs that may well be zero are left out.
function partnersOf(i) {
  const { missing: none, pairs, exact } = CONTENT.interactions;
  if (none) return [];
  const most = Math.max(...pairs.map((pair) => Math.abs(pair.value)));
  const stands = ({ value, half_width: half }) => (exact ? Math.abs(value) > 0.01 * most : certain(value, half));
  return pairs.filter((pair) => pair.pair.includes(i) && stands(pair)).slice(0, 3)
    .map((pair) => ({ j: pair.pair[0] === i ? pair.pair[1] : pair.pair[0], pair }));
}

const call = {
  choose(i) { state.chosen = i; state.pointed = null; showChosen(); },
  point(i) { state.pointed = i; showChosen(); },
  leave() { state.pointed = null; showChosen(); },
  order() { return shownNow().order; },
};

function showChosen() {
  const i = state.pointed === null ? state.chosen : state.pointed, partners = partnersOf(i);
  showPanel(CONTENT, shownNow(), i, partners);
  if (pictures[0]) pictures[0].choose(i, partners.map(({ j }) => j));
  markRow(i);
}

function showAll() {
  const shown = shownNow(), limit = Math.max(...shown.values.map((v) => Math.abs(v)));
  const method = CONTENT.methods.find((each) => each.id === state.method);
  document.getElementById("about").textContent = [method.about, method.note ? `${capital(method.note)}.` : ""].join(" ").trim();
  if (pictures[0]) {
    pictures[0].paint(shown.values, shown.half, limit, shown.order);
    const box = document.querySelector("#figure .legend");
    if (box) {
      const fresh = legend(limit, NOUN);
      fresh.append(...box.querySelectorAll("button"));
      box.replaceWith(fresh);
    }
  }
  showTable(CONTENT, shown, state.chosen, call);
  showResidual(CONTENT, shown);
  showChosen();
  document.getElementById("sigma-box").hidden = !shown.isExplained || Boolean(CONTENT.rows.missing);
}

// --- the slider ---

const TOP = 200;
const toSigma = (at) => (at >= TOP ? Infinity : CONTENT.rows.smallest * (CONTENT.rows.largest / CONTENT.rows.smallest) ** (at / (TOP - 1)));
const toPlace = (sigma) => (sigma === Infinity ? TOP : Math.min(TOP - 1, Math.max(0,
  (TOP - 1) * Math.log(sigma / CONTENT.rows.smallest) / Math.log(CONTENT.rows.largest / CONTENT.rows.smallest))));

function showSigma() {
  const sigma = currentSigma(), slider = document.getElementById("sigma");
  if (sigma !== null) slider.value = toPlace(sigma);
  slider.setAttribute("aria-valuetext", sigma === Infinity ? "infinity, the uniform kernel" : sigma === null ? "another kind of kernel" : number(sigma));
  document.getElementById("sigma-text").textContent = sigma === null ? "" : `= ${sigma === Infinity ? "∞ (uniform)" : number(sigma)}`;
  document.getElementById("sigma-number").value = sigma === null ? "" : sigma === Infinity ? "inf" : String(Number(sigma.toPrecision(4)));
  document.getElementById("sigma-reset").disabled = state.sigma === null;
}

function askFor(sigma) {
  state.sigma = sigma;
  state.request += 1;
  document.body.dataset.busy = "true";
  document.getElementById("status").textContent = `Recomputing every value for ${sigmaWords(sigma)} from the ledger …`;
  showSigma();
  engine().ask({ id: state.request, sigma, level: CONTENT.prediction.level });
}

function asExplained() {
  state.sigma = null;
  state.recomputed = null;
  state.request += 1;
  document.body.dataset.busy = "false";
  document.getElementById("status").textContent = "As explained, computed in Python.";
  showSigma();
  showAll();
}

function received(answer) {
  if (answer.id !== state.request) return; // a newer request is on its way
  const status = document.getElementById("status");
  if (answer.error) {
    document.body.dataset.busy = "false";
    status.textContent = `There is no final value for ${sigmaWords(answer.sigma)}: ${answer.error}. Do not rely on what is shown; explanation.with_kernel computes it in Python.`;
    return;
  }
  state.recomputed = { values: Array.from(answer.values), stderr: Array.from(answer.stderr), half: Array.from(answer.half, (h) => (Number.isFinite(h) ? h : null)),
    sum: answer.values.reduce((a, b) => a + b, 0), exact: answer.exact, how: answer.method };
  const poor = answer.worst >= 0 ? ` The rays cover this σ badly: ${CONTENT.features.names[answer.worst]} rests on ${number(answer.effective, 2)} effective rays, so its value and its ± are unreliable.` : "";
  status.textContent = answer.final
    ? `Recomputed for ${sigmaWords(answer.sigma)} in ${number(answer.ms / 1000, 2)} s from ${CONTENT.rows.n_rays.toLocaleString("en")} rays, without the model.${poor}`
    : `This is a first estimate for ${sigmaWords(answer.sigma)}; the page is computing a better one …`;
  showAll();
  if (answer.final) document.body.dataset.busy = "false";
}

// The arithmetic runs in a worker. If the browser allows no worker, it runs here.
let started = null;
function engine() {
  if (started) return started;
  const here = { ask: (message) => receive(message, received) };
  const first = { ledger: CONTENT.rows, constants: CONTENT.constants };
  const begin = () => { receive(first, received); started = here; return here; };
  try {
    const source = document.getElementById("arithmetic").textContent;
    const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    let last = null;
    worker.onmessage = (event) => received(event.data);
    worker.onerror = () => { begin(); if (last) here.ask(last); };
    worker.postMessage(first);
    started = { ask: (message) => { last = message; worker.postMessage(message); } };
    return started;
  } catch {
    return begin();
  }
}

function wireSigma() {
  const slider = document.getElementById("sigma"), typed = document.getElementById("sigma-number");
  if (CONTENT.rows.missing) {
    document.getElementById("sigma-box").hidden = true;
    document.getElementById("sigma-help").textContent = `There is no slider for the locality: ${CONTENT.rows.missing}`;
    return;
  }
  let waiting = null;
  slider.addEventListener("input", () => {
    const sigma = toSigma(Number(slider.value));
    state.sigma = sigma;
    showSigma();
    clearTimeout(waiting);
    waiting = setTimeout(() => askFor(sigma), 120);
  });
  typed.addEventListener("change", () => {
    const text = typed.value.trim().toLowerCase().replace(",", ".");
    const sigma = ["inf", "infinity", "∞"].includes(text) ? Infinity : Number(text);
    if (sigma > 0) askFor(sigma);
    else { document.getElementById("status").textContent = "σ must be a number above 0, or inf."; showSigma(); }
  });
  document.getElementById("sigma-reset").addEventListener("click", asExplained);
  document.getElementById("status").textContent = "Move the slider and every value is recomputed right here from the ledger, without the model.";
  showSigma();
}

// --- the rest of the page ---

function wireMethods() {
  replace("methods", ...CONTENT.methods.map((method) => make("label", { title: method.missing || method.about },
    make("input", { type: "radio", name: "method", value: method.id, checked: method.id === "gralis", disabled: Boolean(method.missing),
      onchange: () => { state.method = method.id; showAll(); } }), method.name)));
  const absent = CONTENT.methods.filter((method) => method.missing);
  if (absent.length) {
    document.getElementById("sigma-help").before(...absent.map((method) => make("p", { class: "missing" }, `${method.name} is not shown: ${method.missing}`)));
  }
}

function wirePicture() {
  const { picture, view } = CONTENT, figure = document.getElementById("figure");
  if (view) {
    const drawn = { text: drawText, series: drawSeries, volume: drawVolume }[view.type](CONTENT, call);
    pictures.push(drawn);
    figure.append(drawn.svg, legend(1, NOUN));
    return;
  }
  if (picture.missing) { // bars take the picture's place
    document.getElementById("ranking").hidden = true;
    figure.parentElement.classList.add(CONTENT.features.columns ? "tabular" : "bars-only");
    figure.append(document.getElementById("table-box"));
    return;
  }
  const main = drawPicture(CONTENT, "main-", call);
  pictures.push(main);
  figure.append(main.svg);
  if (!picture.regions) {
    figure.append(make("figcaption", {}, `Red: raises the output, blue: lowers it; the stronger the colour, the more. There are too many ${NOUN}s to point at, or they overlap.`));
    return;
  }
  const box = legend(1, NOUN);
  box.append(make("button", { type: "button", "aria-pressed": "false", onclick: (event) => {
    const bare = main.svg.classList.toggle("bare");
    event.target.setAttribute("aria-pressed", String(bare));
    event.target.textContent = bare ? "Show the values" : "Show the picture";
  } }, "Show the picture"));
  figure.append(box);
}

function start() {
  showOpening(CONTENT);
  showReading(CONTENT);
  document.getElementById("ranking-title").textContent = `All ${NOUN}s, the strongest first`;
  document.getElementById("removal-title").textContent = `What if one ${NOUN} were gone?`;
  document.getElementById("interactions-title").textContent = `${capital(NOUN)}s that act together`;
  const { provenance: p } = CONTENT, model = (p.hashes || {}).parameters || (p.hashes || {}).model;
  document.getElementById("footer").textContent = `Made by gralis ${p.gralis}; explained output ${p.target}, baseline ${CONTENT.prediction.baseline}, seed ${p.seed}${model ? `, model sha256 ${String(model).slice(0, 16)}…` : ""}. The HTML file holds all numbers, the technical appendix and the whole record; it loads nothing and sends nothing. Schema ${CONTENT.schema}.`;
  wireTheme();
  wireMethods();
  wirePicture();
  wireSigma();
  state.chosen = shownNow().order[0];
  showAll();
  showRemoval(CONTENT);
  showInteractions(CONTENT);
  showTrust(CONTENT);
  showTechnical(CONTENT);
  showBaseline(CONTENT, []);
  showProvenance(CONTENT, shownNow);
  showWords(NOUN);
  showPanels(CONTENT);
  document.body.dataset.busy = "false";
}

start();
