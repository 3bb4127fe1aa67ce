// phi of one Gaussian kernel from the rows of a ledger: the estimators of the Python package, translated. Arithmetic only.
//
// Every function takes the unpacked ledger. `estimateSteps` yields a first, cheap estimate and then better ones. Its
// caller can look up in between, and can give up an estimate that is no longer wanted.
"use strict";

const KINDS = { "<f8": Float64Array, "<i4": Int32Array, "|u1": Uint8Array };

// A column {dtype, base64} as a typed array.
function unpackColumn(column) {
  const text = atob(column.base64), bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return new KINDS[column.dtype](bytes.buffer);
}

// The ledger of a report as typed arrays, with sizes and the points of each ray.
function unpackLedger(packed) {
  const { formula, method, enumerated, price, rounding, noise } = packed;
  const ledger = { formula, method, enumerated, price, rounding, noise };
  Object.assign(ledger, { fullGap: packed.full_gap, aloneGap: packed.alone_gap });
  for (const [name, column] of Object.entries(packed.columns)) ledger[name] = unpackColumn(column);
  ledger.squaredDistance = packed.squared_distance.map((row) => Float64Array.from(row));
  ledger.baselineWeights = packed.baseline_weights;
  ledger.overlap = constant("overlap");
  ledger.distance = packed.distance;
  ledger.n = packed.n_features;
  ledger.nRays = packed.n_rays;
  ledger.nReplicates = ledger.replicate.reduce((a, b) => Math.max(a, b), -1) + 1;
  ledger.nPoints = ledger.ray ? ledger.ray.length : 0;
  ledger.sizes = new Int32Array(ledger.nRays);
  for (let at = 0; at < ledger.masks.length; at++) ledger.sizes[Math.floor(at / ledger.n)] += ledger.masks[at];
  ledger.pointsOf = Array.from({ length: ledger.nRays }, () => []);
  for (let p = 0; p < ledger.nPoints; p++) ledger.pointsOf[ledger.ray[p]].push(p);
  if (!ledger.rays) ledger.rays = sumPoints(ledger, (p, i) => ledger.weight[p] * ledger.gradient[p * ledger.n + i]);
  return ledger;
}

// Sum of value(p, i) over the points of each ray, zero outside T; (n_rays, n).
function sumPoints(ledger, value) {
  const { n } = ledger, total = new Float64Array(ledger.nRays * n);
  for (let p = 0; p < ledger.nPoints; p++) {
    const row = ledger.ray[p] * n;
    for (let i = 0; i < n; i++) if (ledger.masks[row + i]) total[row + i] += value(p, i);
  }
  return total;
}

// W_i(T) = q_i(T) / rate(T), zero outside T; (n_rays, n).
function importance(ledger, laws) {
  const { n } = ledger, weights = new Float64Array(ledger.nRays * n), log = new Float64Array(n);
  for (let r = 0; r < ledger.nRays; r++) {
    const number = ledger.baseline[r];
    laws[number].logConditional(ledger.masks.subarray(r * n, (r + 1) * n), log);
    for (let i = 0; i < n; i++) {
      weights[r * n + i] = ledger.baselineWeights[number] * Math.exp(log[i] - ledger.log_rate[r]);
    }
  }
  return weights;
}

// (sum r^2)^2 / sum r^4 over the rows r of every column: how many of them carry the variance of their sum.
function carriersOf(rows, n) {
  const count = new Float64Array(n).fill(Infinity);
  for (let i = 0; i < n; i++) {
    let largest = 0, squares = 0, fourths = 0;
    for (let at = i; at < rows.length; at += n) largest = Math.max(largest, Math.abs(rows[at]));
    for (let at = i; at < rows.length && largest; at += n) {
      const square = (rows[at] / largest) ** 2;
      squares += square;
      fourths += square * square;
    }
    if (fourths > 0) count[i] = squares * squares / fourths;
  }
  return count;
}

// The mean over replicates of `known` plus the sum over their rays of `parts`.
function meanOf(ledger, known, parts, method, exact = false) {
  const { n, nReplicates: count } = ledger;
  const each = known ? Float64Array.from(known) : new Float64Array(count * n);
  for (let r = 0; r < ledger.nRays; r++) {
    if (ledger.replicate[r] < 0) continue;
    for (let i = 0; i < n; i++) each[ledger.replicate[r] * n + i] += parts[r * n + i];
  }
  const values = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < count; k++) values[i] += each[k * n + i] / count;
    for (let k = 0; k < count; k++) each[k * n + i] -= values[i];
  }
  return { values, departures: each, carriers: carriersOf(parts, n), method, exact, count };
}

function weighted(ledger, laws) {
  const { n } = ledger, parts = importance(ledger, laws).map((w, at) => w * ledger.rays[at]);
  for (let r = 0; r < ledger.nRays; r++) if (ledger.replicate[r] < 0) parts.fill(0, r * n, (r + 1) * n);
  return meanOf(ledger, null, parts, ledger.method, ledger.enumerated);
}

// All rays in copies of random nodes: each contrast between neighbouring nodes, with the weight of its ray, is one departure.
function copies(ledger, laws) {
  const { n, nReplicates: nCopies, method } = ledger, values = new Float64Array(n), census = constant("census");
  const weights = importance(ledger, laws);
  for (let r = 0; r < ledger.nRays; r++) {
    if (ledger.replicate[r] < 0 && ledger.replicate[r] !== census) continue;
    const share = ledger.replicate[r] >= 0 ? 1 / nCopies : 1;
    for (let i = 0; i < n; i++) values[i] += share * weights[r * n + i] * ledger.rays[r * n + i];
  }
  const count = Math.max(ledger.contrast_ray.length, 2), scale = Math.sqrt(count * (count - 1));
  const rows = ledger.contrasts.map((c, at) => scale * weights[ledger.contrast_ray[Math.floor(at / n)] * n + at % n] * c);
  const departures = new Float64Array(count * n);
  departures.set(rows);
  const carriers = carriersOf(rows, n).map((each) => each / ledger.overlap);
  return { values, departures, carriers, method, exact: false, count };
}

// pi(S) of the predecessors of feature i on a ray; a weight below the least normal number counts as zero.
function kernelWeight(ledger, law, r, i) {
  let log = 0;
  for (let j = 0; j < ledger.n; j++) if (j !== i && ledger.masks[r * ledger.n + j]) log += law.unlimited[j];
  const weight = Math.exp(log);
  return weight < 2 ** -1022 ? 0 : weight;
}

// Algorithm 1: sum pi(S) ray_i / sum pi(S) over the rays drawn for feature i, per baseline; then averaged.
function ratio(ledger, laws) {
  const { n, nReplicates: count } = ledger;
  const values = new Float64Array(n), departures = new Float64Array(count * n);
  const squares = new Float64Array(n), fourths = new Float64Array(n);
  laws.forEach((law, number) => {
    const top = new Float64Array(count * n), bottom = new Float64Array(count * n);
    const value = new Float64Array(n), divisor = new Float64Array(n), share = ledger.baselineWeights[number];
    const own = [];
    for (let r = 0; r < ledger.nRays; r++) {
      const i = ledger.owner[r];
      if (ledger.baseline[r] !== number || i < 0 || ledger.replicate[r] < 0) continue;
      const weight = kernelWeight(ledger, law, r, i), at = ledger.replicate[r] * n + i;
      own.push([i, weight, ledger.rays[r * n + i]]);
      top[at] += weight * ledger.rays[r * n + i];
      bottom[at] += weight;
    }
    for (let i = 0; i < n; i++) {
      let above = 0, total = 0;
      for (let k = 0; k < count; k++) { above += top[k * n + i]; total += bottom[k * n + i]; }
      divisor[i] = total === 0 ? 1 : total;
      value[i] = above / divisor[i];
      values[i] += share * value[i];
      for (let k = 0; k < count; k++) {
        const departure = (top[k * n + i] - value[i] * bottom[k * n + i]) / (divisor[i] / count);
        departures[k * n + i] += total === 0 ? NaN : share * departure;
      }
    }
    for (const [i, weight, ray] of own) {
      const square = (share * weight * (ray - value[i]) / divisor[i]) ** 2;
      squares[i] += square;
      fourths[i] += square * square;
    }
  });
  const carriers = squares.map((s, i) => (fourths[i] > 0 ? s * s / fourths[i] : Infinity));
  return { values, departures, carriers, method: ledger.method, exact: false, count };
}

// Estimates of phi for one sigma; the last one is the best. A step without a new estimate yields null.
function* estimateSteps(ledger, sigma) {
  const laws = ledger.squaredDistance.map((row) => new ProductLaw(logP(row, sigma, ledger.distance)));
  const weights = importance(ledger, laws), { never, known } = unvisited(ledger, weights);
  const moving = never.map((each, i) => ledger.squaredDistance.some((row) => row[i] > 0));
  const withUnknown = ledger.formula === "adjusted" || (ledger.formula === "weighted" && !ledger.enumerated);
  const unknown = never.map((each, i) => withUnknown && each && moving[i]);
  const { effective, worst } = coverage(ledger, laws, weights, known), margin = margins(ledger, laws, weights, known);
  if (ledger.noise) for (let i = 0; i < ledger.n; i++) margin[i] += moving[i] ? ledger.noise : 0;
  const finish = (estimate) => {
    if (!estimate) return null;
    const departures = estimate.departures.map((d, at) => (unknown[at % ledger.n] ? NaN : d));
    return { ...completed(ledger, { ...estimate, departures }, margin, moving), effective, worst, sigma };
  };
  if (ledger.formula === "adjusted") {
    let shown = null, last = null;
    for (const estimate of adjusted(ledger, laws)) {
      last = estimate === shown ? last : finish(estimate);
      yield estimate === shown ? null : last;
      shown = estimate;
    }
    yield last;
  } else if (ledger.formula === "ratio") yield finish(ratio(ledger, laws));
  else if (ledger.formula === "weighted") yield finish(weighted(ledger, laws));
  else if (ledger.formula === "copies") yield finish(copies(ledger, laws));
  else throw new Error(`the page knows no formula ${ledger.formula}`);
}

// The last estimate for one sigma.
function estimateAt(ledger, sigma) {
  let last = null;
  for (const estimate of estimateSteps(ledger, sigma)) last = estimate || last;
  return last;
}
