// The parts of the page below and beside the picture; each takes the content and what is shown at the moment.
"use strict";

const REMOVED = "script, style, link, meta, base, iframe, object, embed, form, img:not([src^='data:'])"; // from registered panels
const NOTHING = 1e-3; // a share of the difference that no reader asks about
const ROUNDING = 1e-9; // below this share of the difference a number is rounding
const N_ROWS = 12, N_REMOVED = 8, N_COMPARED = 8;

function missing(part) { return make("p", { class: "missing" }, part.missing); }

// What the panel says about one feature.
function showPanel(content, shown, i, partners) {
  const { features, prediction, removal, interactions } = content, { noun } = features;
  const value = shown.values[i], half = shown.half[i], low = value - (half || 0), high = value + (half || 0);
  const reach = 1.05 * Math.max(...shown.values.map((v, k) => Math.abs(v) + (known(shown.half[k]) ? shown.half[k] : 0))) || 1;
  const verb = value > 0 ? "raises" : "lowers";
  const sentence = value === 0 ? `This ${noun} has no influence.`
    : half === 0 ? `It ${verb} the output; there is no error above rounding.`
    : !known(half) ? `It seems to ${value > 0 ? "raise" : "lower"} the output; how far off that may be is not known.`
    : certain(value, half) ? `It ${verb} the output: between ${signed(low)} and ${signed(high)} (${percent(prediction.level)}, for all ${noun}s together).`
    : `Its sign is not certain: between ${signed(low)} and ${signed(high)}.`;
  const facts = make("dl", {},
    make("dt", {}, "Place in the list"), make("dd", {}, `${ordinal(shown.order.indexOf(i) + 1)} of ${features.n}`));
  const second = secondMethod(content, shown);
  if (second) facts.append(make("dt", {}, "Shapley value (these add up)"), make("dd", { class: tone(second.values[i], second.half_width[i]) }, `${signed(second.values[i])}${margin(second.half_width[i])}`));
  if (removal && !removal.missing) {
    if (known(removal.drop[i])) {
      facts.append(make("dt", {}, `Output if it were gone (${removal.measured[i] ? "measured" : "estimated"})`),
        make("dd", {}, `${number(prediction.f_x - removal.drop[i])}${margin(removal.half_width[i])}`));
    }
    if (removal.alone && known(removal.alone[i])) {
      facts.append(make("dt", {}, "Output if it were alone (measured)"), make("dd", {}, number(prediction.f_baseline + removal.alone[i])));
    }
  }
  const parts = [
    make("h3", {}, features.names[i]),
    make("p", { class: "small" }, capital(features.where[i])),
    make("p", { class: `value ${tone(value, half)}`, id: "panel-value", "data-value": value }, signed(value), make("small", {}, margin(half))),
    make("div", { class: "axis" }, bar(value, half, -reach, reach)),
    make("p", {}, sentence),
    facts,
  ];
  if (opposedIn(content, i)) parts.splice(5, 0, make("p", { class: "warning" }, "Another method gives it the opposite sign; see the box at the top."));
  if (partners.length) {
    parts.push(make("h4", {}, "Acts together with"), make("ul", {}, ...partners.map(({ j, pair }) => make("li", {}, make("span", {}, features.names[j]),
      make("span", {}, `${signed(pair.value)}${interactions.exact ? "" : margin(pair.half_width)}`)))));
  } else parts.push(make("p", { class: "small" }, interactions.missing ? "" : `No pair with another ${noun} stands out.`));
  replace("panel", ...parts);
}

// The values that add up, to stand beside those of the explanation itself.
function secondMethod(content, shown) {
  const shapley = content.methods.find((method) => method.id === "shapley");
  return shown.isExplained && shapley && !shapley.missing ? shapley : null;
}

function opposedIn(content, i) { return content.disagreements.some(({ feature }) => feature === i); }

// The ranked table; rows keep their full numbers as data.
function showTable(content, shown, chosen, choose) {
  const { features } = content;
  const reach = 1.03 * Math.max(...shown.values.map((v, i) => Math.abs(v) + (known(shown.half[i]) ? shown.half[i] : 0))) || 1;
  const least = shown.values.some((v) => v < 0) || shown.values.some((v, i) => v - shown.half[i] < 0) ? -reach : 0;
  const low = least === 0 ? 0 : -1.03 * Math.max(...shown.values.map((v, i) => (known(shown.half[i]) ? shown.half[i] : 0) - v), 0);
  const second = secondMethod(content, shown), box = document.getElementById("table-box"), all = box.querySelector("table.all") !== null;
  const columns = features.columns ? [["value", "value"], ["baseline", "baseline"], ["range", "range of the data"]].filter(([key]) => features.columns[key].some((each) => each !== null)) : [];
  const rows = shown.order.map((i, rank) => make("tr", {
    class: `${rank >= N_ROWS ? "extra" : ""}${i === chosen ? " chosen" : ""}`, "data-row": i, "data-value": shown.values[i],
    "data-stderr": known(shown.stderr[i]) ? shown.stderr[i] : "", "data-half": known(shown.half[i]) ? shown.half[i] : "",
    onpointerenter: (event) => { if (event.pointerType === "mouse") choose.point(i); },
    onpointerleave: (event) => { if (event.pointerType === "mouse") choose.leave(); },
  },
  make("td", {}, make("button", { class: "name", type: "button", onclick: () => choose.choose(i), onfocus: () => choose.point(i) }, features.names[i]),
    features.columns ? null : make("span", { class: "detail" }, features.where[i]),
    shown.isExplained && opposedIn(content, i) ? make("span", { class: "flag" }, "methods disagree on its direction") : null),
  ...columns.map(([key]) => make("td", { class: "column" }, features.columns[key][i] ?? "")),
  make("td", { class: "bar-cell" }, bar(shown.values[i], shown.half[i], low, reach)),
  make("td", { class: `right ${tone(shown.values[i], shown.half[i])}` }, `${signed(shown.values[i])}${margin(shown.half[i])}`),
  second ? make("td", { class: `right wide ${tone(second.values[i], second.half_width[i])}` }, `${signed(second.values[i])}${margin(second.half_width[i])}`) : null));
  const head = make("tr", {}, make("th", { scope: "col" }, capital(features.noun)),
    ...columns.map(([, title]) => make("th", { scope: "col" }, title)),
    make("th", { scope: "col" }, "lowers | raises the output"), make("th", { scope: "col", class: "right" }, shown.exact ? "φ" : `φ ±`),
    second ? make("th", { scope: "col", class: "right wide" }, second.exact ? "Shapley" : "Shapley ±") : null);
  const table = make("table", { class: all ? "bars all" : "bars" }, make("caption", { class: "small", style: { textAlign: "left", paddingBottom: "8px" } },
    shown.caption), make("thead", {}, head), make("tbody", {}, ...rows));
  const more = rows.length > N_ROWS ? make("button", { type: "button", id: "more", "aria-expanded": String(all), onclick: (event) => {
    const open = table.classList.toggle("all");
    event.target.textContent = open ? "Show fewer" : `Show all ${rows.length}`;
    event.target.setAttribute("aria-expanded", String(open));
  } }, all ? "Show fewer" : `Show all ${rows.length}`) : null;
  const rest = features.n > rows.length ? make("p", { class: "small" }, `${features.n - rows.length} more ${features.noun}s are not listed.`) : null;
  replace("table-box", make("div", { class: "scroll" }, table), more, rest);
}

// The sections that other code registered. What could run or load something is removed; the policy forbids it as well.
function showPanels(content) {
  replace("panels", ...content.panels.map((panel, k) => {
    const parsed = new DOMParser().parseFromString(panel.html || "", "text/html").body;
    for (const each of parsed.querySelectorAll(REMOVED)) each.remove();
    const body = panel.missing ? [missing(panel)] : Array.from(parsed.childNodes);
    return make("section", { "aria-labelledby": `panel-title-${k}` }, make("h2", { id: `panel-title-${k}` }, panel.title), ...body);
  }));
}

function markRow(chosen) {
  for (const row of document.querySelectorAll("#table-box tr[data-row]")) row.classList.toggle("chosen", Number(row.dataset.row) === chosen);
}

// From F(x') to F(x): the sum of the values, then the parts of what remains.
function showResidual(content, shown) {
  const { prediction, residual, features } = content;
  const steps = [[`All ${features.noun}s together`, shown.sum, null, "what the values add up to"]];
  const rest = prediction.delta - shown.sum;
  if (residual.missing || !shown.isExplained) steps.push(["What remains", rest, null, "F(x) − F(x') less the sum"]);
  else {
    const kernel = rest - residual.path.value - residual.numerical.value, as = shown.sigma === null;
    steps.push(
      ["Joint path", residual.path.value, residual.path.half_width, "what is gained or lost only when many act jointly; from measured outputs alone"],
      ["Numerical", residual.numerical.value, residual.numerical.half_width, "how far gradients and measured outputs disagree"],
      ["Locality", kernel, as ? residual.kernel.half_width : null, "what counting near coalitions more than far ones does"]);
  }
  const least = ROUNDING * Math.max(Math.abs(prediction.delta), Math.abs(shown.sum));
  for (const step of steps) {
    if (known(step[2]) && step[2] < least) step[2] = 0;
    if (Math.abs(step[1]) < least) step[1] = 0;
  }
  let at = 0;
  const ends = [0, prediction.delta];
  for (const [, value] of steps) { at += value; ends.push(at); }
  const low = Math.min(...ends), high = Math.max(...ends), room = 0.04 * (high - low || 1);
  at = 0;
  const rows = steps.map(([name, value, half, why], k) => {
    const drawn = bar(value, null, low - room, high + room, at, k ? "" : side(value));
    drawn.append(make("span", { class: "end-mark", style: { left: `${100 * (prediction.delta - low + room) / (high - low + 2 * room)}%` } }));
    at += value;
    return make("tr", { class: "unranked" }, make("td", {}, name, make("span", { class: "detail" }, why)), make("td", { class: "bar-cell" }, drawn),
      make("td", { class: "right" }, `${signed(value)}${half === null ? "" : margin(half)}`));
  });
  rows.push(make("tr", { class: "unranked" }, make("td", {}, make("strong", {}, "The difference"), make("span", { class: "detail" }, "the dotted line")), make("td", { class: "bar-cell" }), make("td", { class: "right" }, make("strong", {}, signed(prediction.delta)))));
  replace("residual-box",
    make("p", {}, `The output is ${number(prediction.f_x)} for the input and ${number(prediction.f_baseline)} for the baseline. The values add up to ${number(shown.sum)}; ${Math.abs(rest) <= NOTHING * Math.abs(prediction.delta) ? "next to nothing remains." : `the remaining ${signed(rest)} belongs to no single ${features.noun}. That is no error: φ counts what a ${features.noun} does in company of every size, and with few others it does ${Math.abs(shown.sum) > Math.abs(prediction.delta) ? "more" : "less"} than with all. Shapley values add up.`}`),
    make("div", { class: "scroll" }, make("table", { class: "bars" }, make("tbody", {}, ...rows))),
    residual.missing && shown.isExplained ? missing(residual) : null);
}

function showTrust(content) {
  const { certificate: c, prediction, features } = content, parts = [];
  if (content.doubts.length) parts.push(make("p", { class: "warning" }, "What follows holds only as far as the doubts at the top of this page allow."));
  if (c.missing) parts.push(missing(c));
  else {
    const share = known(c.share) ? `, which is ${percent(c.share)} of the difference` : "";
    parts.push(make("p", {}, c.exact
      ? "Every coalition was evaluated, and what the nodes along the rays leave out is below rounding. No value has an error above rounding."
      : !known(c.widest) ? "How far off all the values may be is not known."
      : !c.sampled ? `Every coalition was evaluated, so there is no sampling error. All ${features.n} values are within their ± if the nodes along the rays show their own error; the widest is ${number(c.widest, 2)}${share}.`
      : `With a probability of ${percent(prediction.level)} all ${features.n} values are within their ± at once. The widest ± is ${number(c.widest, 2)}${share}.`));
    if (c.vacuous) parts.push(make("p", { class: "warning" }, "Some ± are wider than the whole difference: with this budget, those values say little."));
  }
  parts.push(make("p", { class: "note-box" },
    `These numbers describe the model, not the world. To find them, parts of the input were replaced by the baseline; the model may never have seen such mixtures, and its answers to them may be off. A ${features.noun} that matters to the model need not be a cause, and the model may be wrong.`));
  replace("trust-box", ...parts);
}

// What an auditor asks for, each number with its meaning.
function showTechnical(content) {
  const { certificate: c, prediction, methods: [first] } = content;
  if (c.missing) return replace("technical-box", missing(c));
  const parts = [make("p", {}, c.exact ? "No value has an error above rounding." : `The ± rest on ${c.ground} (${c.kind}). The sum of all values is within ${number(c.aggregate, 2)}.`),
    make("p", {}, `Estimator: ${first.method}. ${first.about}`)];
  if (!c.quadrature_known) parts.push(make("p", {}, "The error of the fixed nodes along the rays is not known, so that the values have no ±."));
  else if (c.quadrature > 0) parts.push(make("p", {}, `Of each ±, at most ${number(c.quadrature, 2)} stands for what all replicates share and none can show: the error of fixed nodes, or what nodes and coalitions may have missed.`));
  if (c.checksum) {
    const { n_rays: count, mean, rms } = c.checksum, share = prediction.delta ? ` (${percent(Math.abs(mean / prediction.delta))} of the difference)` : "";
    parts.push(make("p", {}, `Check of gradients against outputs: on each of ${count.toLocaleString("en")} rays, the gradients should add up to a measured output. On average over the rays they miss it by ${number(Math.abs(mean), 2)}${share}; only this average enters the values, and it is part of the ±. `
      + `A single ray misses it by ${number(rms, 2)} as a rule. That is no fault: a ray is looked at in a few random places only, and these deviations cancel over the rays.`));
  }
  return replace("technical-box", ...parts);
}

function showInteractions(content) {
  const { interactions: part, features } = content;
  if (part.missing) return replace("interactions-box", missing(part));
  const most = Math.max(...part.pairs.map((pair) => Math.abs(pair.value)));
  const pairs = part.pairs.slice(0, part.first).filter((pair) => !part.exact || Math.abs(pair.value) > ROUNDING * most);
  if (!pairs.length) return replace("interactions-box", make("p", {}, `No two ${features.noun}s act together.`));
  const clear = pairs.filter((pair) => certain(pair.value, pair.half_width)).length;
  const reach = Math.max(...pairs.map((pair) => Math.abs(pair.value) + (known(pair.half_width) ? pair.half_width : 0))) || 1;
  const rows = pairs.map((pair) => make("tr", { class: "unranked" },
    make("td", {}, pair.pair.map((i) => features.names[i]).join(" and "), make("span", { class: "detail" }, pair.value > 0 ? "together more than each for itself" : "overlap: together less than each for itself")),
    make("td", { class: "bar-cell" }, bar(pair.value, part.exact ? null : pair.half_width, -reach, reach, 0, "pair")),
    make("td", { class: "right" }, `${signed(pair.value)}${part.exact ? "" : margin(pair.half_width)}`)));
  const certainty = part.exact ? "These have no error above rounding." : clear ? `${clear} of the pairs listed can be distinguished from zero when all pairs are judged at once.`
    : "With this budget no pair can be distinguished from zero when all pairs are judged at once. The list shows those with the strongest evidence.";
  return replace("interactions-box", make("p", {}, `How much more, or less, two ${features.noun}s do together than each for itself (Shapley interaction index). ${certainty}`),
    make("div", { class: "scroll" }, make("table", { class: "bars" }, make("tbody", {}, ...rows))),
    part.exact ? null : make("p", { class: "small" }, "Lines and ± hold for all pairs at once, as those of the values do."));
}

function showRemoval(content) {
  const { removal: part, features, prediction } = content, { noun } = features;
  if (part.missing) return replace("removal-box", missing(part));
  const order = part.drop.map((drop, i) => i).filter((i) => known(part.drop[i])).sort((a, b) => Math.abs(part.drop[b]) - Math.abs(part.drop[a]));
  if (!order.length) return replace("removal-box", make("p", { class: "missing" }, `No coalition of all but one ${noun} was evaluated, so the output without a ${noun} is not known. What each does alone is in the panel above.`));
  const ends = order.flatMap((i) => [part.drop[i] - (part.half_width[i] || 0), part.drop[i] + (part.half_width[i] || 0)]);
  const low = 1.03 * Math.min(...ends, 0), high = 1.03 * Math.max(...ends, 0);
  const rows = order.slice(0, N_REMOVED).map((i) => make("tr", { class: "unranked" }, make("td", {}, features.names[i], make("span", { class: "detail" }, features.where[i])),
    make("td", { class: "bar-cell" }, bar(part.drop[i], part.half_width[i], low, high)),
    make("td", { class: "right" }, `${number(prediction.f_x)} → ${number(prediction.f_x - part.drop[i])}${margin(part.half_width[i])}`, make("span", { class: "detail" }, part.measured[i] ? "measured" : "estimated"))));
  const count = part.measured.filter(Boolean).length;
  const how = count === part.measured.length ? `Every one of these outputs was measured.`
    : `${count} of ${part.measured.length} outputs were measured; the others are estimated from the coalitions that were, with their ±.`;
  return replace("removal-box", make("p", {}, `The output if one ${noun} went to its baseline and all others stayed; the largest changes come first. Red: without it the output falls, so it holds the output up. Blue: without it the output rises. ${how} A small change does not mean that the ${noun} is unimportant: others may stand in for it.`),
    make("div", { class: "scroll" }, make("table", { class: "bars" }, make("tbody", {}, ...rows))));
}
