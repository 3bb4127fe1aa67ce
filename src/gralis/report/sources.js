// Baselines, provenance, downloads and the words used.
"use strict";

function showBaseline(content, pictures) {
  const { prediction, picture, beside, features, methods } = content;
  const parts = [make("p", {}, `Every number here is a comparison with ${prediction.compared_with}. Another baseline asks another question and may give other answers.`)];
  const thumbs = make("div", { class: "thumbs" });
  const card = (svg, text) => make("figure", {}, svg, make("figcaption", {}, text));
  const all = [{ ...methods[0], prediction }, ...beside];
  if (beside.length && picture.regions) {
    const limit = Math.max(...all.flatMap((each) => each.values.map((v) => Math.abs(v))));
    all.forEach((each, k) => {
      const small = drawPicture(content, `beside${k}-`, null);
      small.paint(each.values, each.half_width, limit, []);
      small.svg.setAttribute("aria-label", `The regions against the baseline ${each.prediction.baseline}`);
      pictures.push(small);
      if (k && each.baseline) thumbs.append(card(make("img", { src: each.baseline, alt: "Another baseline" }), `The other baseline: ${each.prediction.baseline}`));
      thumbs.append(card(small.svg, `Against ${each.prediction.baseline}: difference ${signed(each.prediction.delta)}`));
    });
  }
  if (thumbs.children.length) parts.push(thumbs);
  document.getElementById("baseline").classList.toggle("several", beside.length > 0);
  for (const each of beside) parts.push(...each.doubts.map((doubt) => make("p", { class: "warning" }, `Doubt about the values against ${each.prediction.baseline}: ${doubt}`)));
  if (!beside.length) parts.push(make("p", { class: "missing" }, "Only one baseline was explained, so how much the choice matters cannot be seen here; give a second explanation as beside=[...] to see both."));
  else parts.push(...compare(all, features));
  replace("baseline-box", ...parts);
}

// Several explanations of the same features in one table, and in one sentence.
function compare(all, features) {
  const [first] = all, { noun } = features;
  const most = first.values.map((v, i) => Math.max(...all.map((each) => Math.abs(each.values[i]))));
  const order = most.map((m, i) => i).sort((a, b) => most[b] - most[a]).slice(0, N_COMPARED);
  const apart = (i) => all.slice(1).some((each) => Math.abs(each.values[i] - first.values[i]) > each.half_width[i] + first.half_width[i]);
  const rows = order.map((i) => make("tr", {}, make("td", {}, features.names[i], make("span", { class: "detail" }, features.where[i])),
    ...all.map((each) => make("td", { class: `right ${tone(each.values[i], each.half_width[i])}` }, `${signed(each.values[i])}${margin(each.half_width[i])}`)),
    make("td", { class: "wide" }, apart(i) ? "differ clearly" : "may be equal")));
  const head = make("tr", {}, make("th", { scope: "col" }, capital(noun)), ...all.map((each) => make("th", { scope: "col", class: "right" }, each.prediction.baseline)), make("th", { scope: "col", class: "wide" }, all.length > 2 ? "all of them" : "the two"));
  const top = (each) => each.values.map((v, i) => i).sort((a, b) => Math.abs(each.values[b]) - Math.abs(each.values[a])).slice(0, 5);
  const sentences = all.slice(1).map((each) => {
    const same = top(each).filter((i) => top(first).includes(i)).length, turned = each.values.filter((v, i) => v * first.values[i] < 0 && certain(v, each.half_width[i]) && certain(first.values[i], first.half_width[i])).length;
    return `Against ${each.prediction.baseline}, ${same} of the ${Math.min(5, features.names.length)} strongest ${noun}s are the same, and ${turned || "no"} ${noun}${turned === 1 ? "" : "s"} changed sides for certain.`;
  });
  return [make("p", {}, sentences.join(" ")), make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)))];
}

function showProvenance(content, shown) {
  const { provenance: p, plan, cost, kernel, prediction, archive } = content;
  const file = decodeURIComponent(location.pathname.split("/").pop() || "") || "why.html";
  const quoted = /^[\w.-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`;
  const count = (value, noun) => `${value.toLocaleString("en")} ${noun}${value === 1 ? "" : "s"}`;
  const facts = [
    ["Target", prediction.label ? `${prediction.label} (${p.target})` : p.target],
    ["Baseline", prediction.baseline],
    ["Features", p.features],
    ["Kernel", kernel.text],
    ["Plan and estimator", `${plan.name}, ${content.methods[0].method}`],
    ["Cost", `${count(cost.n_gradients, "gradient")}, ${count(cost.n_forwards, "forward")}, ${number(cost.seconds)} s`],
    ["Budget, seed, precision", `${p.budget ?? "as needed"}, ${p.seed}, ${p.dtype}`],
    ["Versions", ["gralis", "python", "torch", "numpy", "scipy"].filter((name) => p[name]).map((name) => `${name} ${p[name]}`).join(", ")],
    ...Object.entries(p.hashes || {}).map(([name, hash]) => [`sha256 of ${name}`, make("code", {}, String(hash))]),
  ];
  const parts = [make("dl", { class: "facts" }, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value instanceof Node ? value : String(value))]))];
  if (archive.missing) parts.push(missing(archive));
  else {
    parts.push(make("p", {}, "This page holds the whole saved explanation. Whoever has the model can recompute every number from it and see whether it is the same:"),
      make("pre", {}, make("code", {}, `gralis replay ${quoted} --model your_package.module:factory`)),
      make("p", {}, "Without the model, in Python:"),
      make("pre", {}, make("code", {}, `import gralis\nexplanation = gralis.load(${JSON.stringify(file)})`)));
  }
  const stem = file.replace(/\.html?$/, "");
  const buttons = make("div", { class: "row" },
    make("button", { type: "button", id: "save-json", onclick: () => download(`${stem}.json`, JSON.stringify(content), "application/json") }, "Save as JSON"),
    make("button", { type: "button", id: "save-csv", onclick: () => download(`${stem}.csv`, asCsv(content, shown()), "text/csv") }, "Save the values as CSV"));
  if (!archive.missing && typeof DecompressionStream !== "undefined") {
    buttons.append(make("button", { type: "button", id: "save-archive", onclick: async () => {
      const bytes = Uint8Array.from(atob(archive.data), (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      download(`${stem}.gralis`, await new Response(stream).arrayBuffer(), "application/octet-stream");
    } }, "Save the explanation (.gralis)"));
  }
  replace("provenance-box", ...parts, buttons);
}

function asCsv(content, shown) {
  const rows = shown.order.map((i) => [content.features.names[i], content.features.where[i], shown.values[i], shown.stderr[i] ?? "", shown.half[i] ?? ""]);
  return csvText([["feature", "where", "phi", "standard_error", "half_width"], ...rows]);
}

function showWords(noun) {
  const entries = [
    ["φ (phi)", `What a ${noun} contributes to the difference between the output for the input and for the baseline: positive raises the output, negative lowers it.`],
    ["± (half-width)", "How far off the value may be, because the coalitions, or the points along their rays, are only a part of all. With the stated probability all values lie within their ± at once."],
    ["Baseline", `The input to which the actual one is compared; a ${noun} that is "gone" has its baseline value.`],
    ["Ray", "The straight line from the baseline to a coalition, along which gradients are taken."],
    ["Coalition", `A set of ${noun}s that are as in the input while all others are as in the baseline.`],
    ["Locality σ", `How much coalitions far from the baseline count. Small: mostly what a ${noun} does with few others present. At the far end all coalition sizes count equally.`],
    ["Shapley value", `What a ${noun} adds to the output, averaged over all orders in which the ${noun}s can join. Shapley values add up to the difference; φ need not.`],
    ["Estimator", "How φ is computed from the rays. A name in brackets, such as drift or constant, is the simple model of the network that was subtracted to make the ± smaller; it does not change what φ means."],
    ["Ledger", "The record of every evaluation of the model. Everything on this page, the slider too, is computed from it without the model."],
  ];
  replace("words", ...entries.flatMap(([word, meaning]) => [make("dt", {}, word), make("dd", {}, meaning)]));
}
