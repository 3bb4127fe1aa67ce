// The data: one script per chunk of rows registers itself here. Nothing is fetched, so it works from disk.
"use strict";

const COLUMNS = ["id", "label", "class", "right", "output", "delta", "residual", "width", "sure", "doubts", "failure", "top", "opposed", "report", "thumb"];
const cases = { head: null, count: 0, phi: null, kept: 0 };
for (const name of COLUMNS) cases[name] = [];
const arrived = new Map(); // what waits for a script, by its name

window.gralisGallery = {
  head(head) { cases.head = head; (arrived.get("head") || (() => {}))(); },
  rows(number, chunk) { keep(number, chunk); (arrived.get(number) || (() => {}))(); },
};

function keep(number, chunk) {
  const start = number * cases.head.chunk, count = chunk.id.length;
  for (const name of COLUMNS) for (let k = 0; k < count; k++) cases[name][start + k] = chunk[name][k];
  cases.kept = chunk.n_kept;
  if (!cases.phi) cases.phi = new Float32Array(cases.head.n * cases.kept);
  const bytes = atob(chunk.phi), raw = new Uint8Array(bytes.length);
  for (let k = 0; k < bytes.length; k++) raw[k] = bytes.charCodeAt(k);
  cases.phi.set(new Float32Array(raw.buffer), start * cases.kept);
  cases.count += count;
}

// A script of the data folder; resolves once it has registered itself.
function script(key, name) {
  return new Promise((resolve, reject) => {
    arrived.set(key, resolve);
    document.head.append(make("script", { src: `data/${name}`, onerror: () => reject(new Error(`data/${name} cannot be read`)) }));
  });
}

async function readAll(progress) {
  await script("head", "head.js");
  for (let number = 0; number < cases.head.n_chunks; number++) {
    await script(number, `rows-${String(number).padStart(5, "0")}.js`);
    progress(number + 1, cases.head.n_chunks);
  }
}

// Too uncertain to use: the sign of the largest value is open, the widest ± exceeds the difference, or there is a doubt.
function uncertain(i) {
  if (cases.failure[i] !== null) return false;
  return !cases.sure[i] || cases.doubts[i].length > 0 || !known(cases.width[i]) || cases.width[i] > Math.abs(cases.delta[i]);
}

function strongestOf(i) { return cases.top[i].length ? cases.top[i][0][0] : null; }
