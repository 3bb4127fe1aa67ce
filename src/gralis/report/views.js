// Texts, series and volumes: each drawing can be painted with values, and points at a feature, as the picture does.
"use strict";

// A mark that stands for a feature: it can be pointed at, tapped, and reached by the arrow keys.
function pointable(element, i, call) {
  element.setAttribute("role", "button");
  element.setAttribute("tabindex", "-1");
  element.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") call.point(i); });
  element.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") call.leave(); });
  element.addEventListener("click", () => call.choose(i));
  element.addEventListener("focus", () => call.point(i));
  return element;
}

// Arrow keys go from feature to feature in the order of the list; `elements` has the mark of each feature.
function wireKeys(box, elements, call) {
  box.addEventListener("keydown", (event) => {
    const here = elements.indexOf(document.activeElement), order = call.order();
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    let next = null;
    if (here < 0) return;
    if (step) next = order[(order.indexOf(here) + step + order.length) % order.length];
    else if (event.key === "Home") next = order[0];
    else if (event.key === "End") next = order[order.length - 1];
    else if (event.key === "Enter" || event.key === " ") { event.preventDefault(); call.choose(here); return; }
    if (next === null) return;
    event.preventDefault();
    elements.forEach((element, i) => element.setAttribute("tabindex", i === next ? "0" : "-1"));
    elements[next].focus();
  });
}

function nameMark(element, features, i, value, half, first) {
  element.setAttribute("aria-label", `${features.names[i]}, ${features.where[i]}: ${signed(value)}${margin(half)}`);
  element.setAttribute("tabindex", i === first ? "0" : "-1");
}

// The sentence in colour; a hatched word may raise or lower the output.
function drawText({ view, features }, call) {
  const marks = [], box = make("p", { class: "sentence", role: "group", "aria-label": "The text; arrow keys go from one part to the next" });
  for (const [i, text] of view.pieces) {
    if (i === null) { box.append(text); continue; }
    const mark = pointable(make("span", { class: "piece", "data-region": i }, text), i, call);
    marks[i] = marks[i] || mark;
    box.append(mark);
  }
  wireKeys(box, marks, call);
  return {
    svg: box,
    paint(values, halves, limit, order) {
      for (const mark of box.querySelectorAll(".piece")) {
        const i = Number(mark.dataset.region), share = Math.round(8 + 82 * Math.min(Math.abs(values[i]) / (limit || 1), 1));
        const colour = values[i] ? `color-mix(in srgb, var(--${side(values[i])}) ${share}%, transparent)` : "transparent";
        mark.style.background = certain(values[i], halves[i]) || halves[i] === 0 ? colour : `repeating-linear-gradient(45deg, ${colour} 0 3px, transparent 3px 6px)`;
        nameMark(mark, features, i, values[i], halves[i], order[0]);
      }
    },
    choose(i) { for (const mark of box.querySelectorAll(".piece")) mark.classList.toggle("chosen", Number(mark.dataset.region) === i); },
  };
}

// The signal over time, with a band for each window; the dashed line is the baseline.
function drawSeries({ view, features }, call) {
  const wide = 720, track = Math.max(60, Math.min(150, 300 / view.signals.length)), left = 46, foot = 40, tall = track * view.signals.length + foot;
  const at = (step) => left + (wide - left - 8) * step / view.length;
  const svg = draw("svg", { viewBox: `0 0 ${wide} ${tall}`, class: "picture series", role: "group", "aria-label": "The signal over time with its windows; arrow keys go from one to the next" });
  svg.append(draw("defs", {}, hatch("series-for", "var(--for)"), hatch("series-against", "var(--against)")));
  const bands = view.windows.map(([start, stop], i) => pointable(draw("rect", { x: at(start), y: 0, width: at(stop) - at(start), height: tall - foot, class: "region", "data-region": i }), i, call));
  svg.append(draw("g", {}, ...bands));
  view.signals.forEach((signal, k) => {
    const both = [...signal, ...view.baselines[k]], low = Math.min(...both), high = Math.max(...both), room = 0.08 * (high - low || 1);
    const y = (value) => (k + 1) * track - 4 - (track - 8) * (value - low + room) / (high - low + 2 * room);
    const line = (values, kind) => draw("polyline", { class: kind, points: values.map((value, place) => `${at(place * view.step).toFixed(1)},${y(value).toFixed(1)}`).join(" ") });
    svg.append(line(view.baselines[k], "signal base"), line(signal, "signal"));
    for (const value of [low, high]) svg.append(draw("text", { x: left - 4, y: y(value), class: "tick", "text-anchor": "end", "dominant-baseline": "middle" }, number(value, 2)));
  });
  const rate = view.rate || 1, end = view.length / rate, raw = end / 6, power = 10 ** Math.floor(Math.log10(raw)), gap = power * [1, 2, 5, 10].find((m) => m * power >= raw);
  for (let time = 0; time <= end * 1.0001; time += gap) {
    svg.append(draw("line", { x1: at(time * rate), x2: at(time * rate), y1: tall - foot, y2: tall - foot + 5, class: "axis-line" }),
      draw("text", { x: at(time * rate), y: tall - foot + 17, class: "tick", "text-anchor": "middle" }, String(Number(time.toPrecision(6)))));
  }
  svg.append(draw("line", { x1: at(0), x2: at(view.length), y1: tall - foot, y2: tall - foot, class: "axis-line" }),
    draw("text", { x: (at(0) + at(view.length)) / 2, y: tall - 4, class: "tick", "text-anchor": "middle" }, `time (${view.unit})`));
  wireKeys(svg, bands, call);
  return {
    svg,
    paint(values, halves, limit, order) {
      bands.forEach((band, i) => {
        const kind = side(values[i]) || "for", sure = certain(values[i], halves[i]) || halves[i] === 0;
        band.setAttribute("fill", sure ? `var(--${kind})` : `url(#series-${kind})`);
        band.setAttribute("fill-opacity", FAINT + LIT * Math.min(Math.abs(values[i]) / (limit || 1), 1));
        nameMark(band, features, i, values[i], halves[i], order[0]);
      });
    },
    choose(i) { bands.forEach((band, k) => band.classList.toggle("chosen", k === i)); },
  };
}
