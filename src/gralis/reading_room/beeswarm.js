// The values of the strongest features over the listed inputs: one dot per input, red above zero and blue below.
"use strict";

const SHOWN_SHARE = 0.998, SWARM_ROWS = 10, SWARM_HEIGHT = 34, SWARM_BINS = 140, MOST_DOTS = 3000; // of one feature

function drawBeeswarm() {
  const box = document.getElementById("beeswarm-box"), { everyone } = cases.head;
  if (everyone.missing || !cases.kept) return box.replaceChildren();
  const count = Math.min(SWARM_ROWS, cases.kept), wide = Math.max(280, box.clientWidth || 900), narrow = wide < 560, left = narrow ? 96 : 170;
  const shown = list.shown.filter((i) => cases.failure[i] === null), step = Math.max(1, Math.ceil(shown.length / MOST_DOTS));
  const canvas = make("canvas", { role: "img", "aria-label": `The values of the ${count} strongest features over ${shown.length} inputs; the table below has their means`, class: "swarm" });
  const scale = window.devicePixelRatio || 1, tall = count * SWARM_HEIGHT + 26;
  canvas.width = wide * scale; canvas.height = tall * scale;
  Object.assign(canvas.style, { width: `${wide}px`, height: `${tall}px` });
  const drawn = shown.filter((_, place) => place % step === 0), sizes = new Float32Array(drawn.length * count);
  drawn.forEach((i, place) => { for (let k = 0; k < count; k++) sizes[place * count + k] = Math.abs(cases.phi[i * cases.kept + k]); });
  const reach = sizes.length ? sizes.sort()[Math.floor((sizes.length - 1) * SHOWN_SHARE)] : 1; // what is farther out stands at the edge
  const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
  const pen = canvas.getContext("2d"), at = (v) => left + (wide - left - 16) * (v / (reach || 1) + 1) / 2;
  pen.scale(scale, scale);
  pen.font = "13px system-ui, sans-serif";
  pen.textBaseline = "middle";
  for (let k = 0; k < count; k++) {
    const middle = (k + 0.5) * SWARM_HEIGHT, used = new Map();
    pen.fillStyle = colour("--ink");
    const name = everyone.names[k], most = narrow ? 13 : 24;
    pen.fillText(name.length > most ? `${name.slice(0, most - 1)}…` : name, 0, middle);
    pen.globalAlpha = 0.6;
    for (const i of drawn) {
      const value = Math.max(-reach, Math.min(reach, cases.phi[i * cases.kept + k])), bin = Math.round(SWARM_BINS * value / (reach || 1)), stack = used.get(bin) || 0;
      used.set(bin, stack + 1);
      const shift = Math.ceil(stack / 2) * (stack % 2 ? 1 : -1) * 1.6;
      if (Math.abs(shift) > SWARM_HEIGHT / 2 - 3) continue; // the row is full here
      pen.fillStyle = colour(value > 0 ? "--for" : "--against");
      pen.fillRect(at(value) - 1.2, middle + shift - 1.2, 2.4, 2.4);
    }
    pen.globalAlpha = 1;
  }
  pen.strokeStyle = colour("--grey");
  pen.beginPath(); pen.moveTo(at(0), 0); pen.lineTo(at(0), count * SWARM_HEIGHT); pen.stroke();
  pen.fillStyle = colour("--soft");
  pen.textAlign = "center";
  for (const value of [-reach, 0, reach]) pen.fillText(signed(Number(value.toPrecision(3))), Math.min(at(value), wide - 26), tall - 12);
  const some = step > 1 ? ` Every ${ordinal(step)} of them is drawn.` : "";
  return box.replaceChildren(make("p", { class: "missing" }, `One dot for each of the ${shown.length.toLocaleString("en")} listed inputs that have a result: φ of the ${count} features that are strongest in the whole data set.${some}`), canvas);
}
